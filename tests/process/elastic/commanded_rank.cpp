// A rank in a process of its own, so that a test can kill it.
//
//   commanded_rank [RANK]
//
// It joins, prints "joined RANK", and follows the commands on its standard input, one per line. It
// answers each one with a line, or with "error CODE: TEXT". It leaves at the end of its input.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <nexar/nexar.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "process/elastic/application_state.hpp"

namespace {

/// The longest time that a command may take.
constexpr std::chrono::seconds kPatience{40};

void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

std::string list(const std::vector<int>& ranks) {
    std::string all;
    for (const int rank : ranks) all += (all.empty() ? "" : ",") + std::to_string(rank);
    return all;
}

nexar::Recovery policy_of(const std::string& name) {
    if (name == "automatic") return nexar::Recovery::automatic;
    if (name == "abort") return nexar::Recovery::abort;
    return nexar::Recovery::manual;
}

class CommandedRank {
public:
    explicit CommandedRank(const nexar::JoinOptions& options) : node_(nexar::join(options)) {
        say("joined " + std::to_string(node_.rank()));
    }

    void follow(const std::string& line) {
        std::istringstream words(line);
        std::string command;
        words >> command;
        try {
            say(follow(command, words));
        } catch (const nexar::Error& error) {
            say("error " + std::string(name(error.code())) + ": " + error.cause());
        }
    }

private:
    std::string follow(const std::string& command, std::istringstream& words) {
        if (command == "world") return "world " + list(node_.world().members());
        if (command == "sum") {
            const int all = node_.world().all_reduce(node_.rank(), nexar::sum).wait();
            return "sum " + std::to_string(all);
        }
        if (command == "sum_until_aborted") {
            const auto deadline = std::chrono::steady_clock::now() + kPatience;
            while (std::chrono::steady_clock::now() < deadline) {
                const auto result = node_.world().all_reduce(1, nexar::sum).result();
                if (!result && result.error().code() == nexar::Errc::aborted) throw result.error();
            }
            throw std::runtime_error("nobody aborted in time");
        }
        if (command == "failures") {
            std::size_t known = 0;
            words >> known;
            auto failed = node_.failures().longer_than(known);
            if (!failed.wait_for(kPatience)) throw std::runtime_error("nobody failed in time");
            return "failures " + list(failed.wait());
        }
        if (command == "checkpoint") {
            const auto change = node_.elastic_checkpoint();
            return "checkpoint " + (change ? list(change->new_world.members()) : "nothing");
        }
        if (command == "policy") {
            std::string policy;
            words >> policy;
            node_.recover(policy_of(policy));
            return "policy " + policy;
        }
        if (command == "state") {
            std::size_t bytes = 0;
            std::uint64_t number = 0;
            int senders = 0;
            words >> bytes >> number >> senders;
            node_.on_join({.save =
                               [bytes, number] {
                                   say("saving");
                                   return nexar::testing::application_state(bytes, number);
                               },
                           .load =
                               [bytes, number](const std::vector<std::byte>& state) {
                                   const auto wanted =
                                       nexar::testing::application_state(bytes, number);
                                   say(state == wanted ? "loaded" : "loaded something else");
                               },
                           .senders = senders});
            return "state";
        }
        throw std::runtime_error("unknown command: " + command);
    }

    nexar::Node node_;
};

}  // namespace

int main(int argc, char** argv) {
    try {
        nexar::JoinOptions options;
        if (argc > 1) options.rank = std::atoi(argv[1]);
        CommandedRank rank(options);
        for (std::string line; std::getline(std::cin, line);) rank.follow(line);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 99;
    }
}

// A process of the chaos tests.
//
//   chaos_rank --seed LISTEN WORLD STATE_DIR LINK BUDGET   the seed; prints "token JOIN_STRING"
//   chaos_rank LOG PACE_US HAMMER_MS                       a rank, see workload.hpp

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nexar/nexar.hpp>
#include <string>
#include <string_view>

#include "process/chaos/journal.hpp"
#include "process/chaos/workload.hpp"

namespace {

int be_the_seed(char** arguments) {
    nexar::SeedOptions options;
    options.listen = arguments[0];
    options.world = std::atoi(arguments[1]);
    options.state_dir = arguments[2];
    options.settings = {{"link", arguments[3]}, {"failure_budget", arguments[4]}};
    nexar::Seed seed(options);
    const std::string token = seed.create_token({.uses = 100'000, .ttl = std::chrono::hours(24)});
    std::printf("token %s\n", token.c_str());
    std::fflush(stdout);
    for (;;) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc == 7 && std::string_view(argv[1]) == "--seed") return be_the_seed(argv + 2);
        if (argc != 4) return 2;
        nexar::chaos::Journal journal(argv[1]);
        nexar::chaos::WorkloadOptions options;
        options.pace = std::chrono::microseconds(std::atoi(argv[2]));
        options.hammer = std::chrono::milliseconds(std::atoi(argv[3]));
        nexar::chaos::Workload workload(journal, options);
        std::_Exit(workload.run());
    } catch (const std::exception& error) {
        std::printf("trouble %s\n", error.what());
        std::fflush(stdout);
        return 1;
    }
}

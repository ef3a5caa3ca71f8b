// A process of the chaos tests.
//
//   chaos_rank --seed LISTEN WORLD STATE_DIR LINK BUDGET [OTHER [CA_DIR]]
//                                  a seed; prints "token JOIN_STRING", and "formed" when it knows
//                                  the members. OTHER is the address of the other seed; with
//                                  CA_DIR this is the second one
//   chaos_rank LOG PACE_US HAMMER_MS
//                                  a rank, see workload.hpp

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nexar/nexar.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "process/chaos/journal.hpp"
#include "process/chaos/workload.hpp"

namespace {

int be_a_seed(int count, char** arguments) {
    nexar::SeedOptions options;
    options.listen = arguments[0];
    options.world = std::atoi(arguments[1]);
    options.state_dir = arguments[2];
    options.settings = {{"link", arguments[3]}, {"failure_budget", arguments[4]}};
    if (count > 5) options.other_seeds = {arguments[5]};
    if (count > 6) {
        options.second = true;
        options.ca_dir = arguments[6];
    }
    nexar::Seed seed(options);
    const std::string token = seed.create_token({.uses = 100'000, .ttl = std::chrono::hours(24)});
    std::printf("token %s\n", token.c_str());
    std::fflush(stdout);
    while (!seed.formed()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::printf("formed\n");
    std::fflush(stdout);
    for (;;) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc >= 7 && argc <= 9 && std::string_view(argv[1]) == "--seed") {
            return be_a_seed(argc - 2, argv + 2);
        }
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

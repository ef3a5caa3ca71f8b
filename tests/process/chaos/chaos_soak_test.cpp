// The chaos tests, repeated for hours. NEXAR_SOAK_RUNS sets the number of cycles of the first
// group, NEXAR_CHAOS_SPAN the seconds of the last.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nexar/error.hpp>

#include "process/chaos/endurance.hpp"
#include "process/chaos/fencing.hpp"
#include "process/chaos/scenario.hpp"
#include "support/network_namespace.hpp"
#include "support/seed.hpp"

namespace nexar::chaos {
namespace {

int number_from(const char* variable, int fallback) {
    const char* const given = std::getenv(variable);
    return given == nullptr ? fallback : std::atoi(given);
}

int cycles(int fallback) {
    return number_from("NEXAR_SOAK_RUNS", fallback);
}

/// Runs many cycles. After every 100 (NEXAR_CHAOS_CYCLES) another cluster begins, with another seed
/// and size.
void run_cycles(const std::string& link, int wanted, std::uint64_t seed, bool with_cuts) {
    const int per_cluster = number_from("NEXAR_CHAOS_CYCLES", 100);
    int done = 0;
    while (done < wanted && !::testing::Test::HasFailure()) {
        const int ranks = 4 + static_cast<int>(seed % 5);
        std::unique_ptr<Networks> networks;
        if (with_cuts) networks = std::make_unique<Networks>(ranks + 3);
        done += run_scenario({.ranks = ranks,
                              .link = link,
                              .cycles = std::min(per_cluster, wanted - done),
                              .seed = seed++,
                              .with_cuts = with_cuts},
                             networks.get());
    }
    EXPECT_GE(done, wanted);
}

TEST(ChaosSoak, shared_memory) {
    run_cycles("auto", cycles(700), test_seed(2131), false);
}

TEST(ChaosSoak, quic) {
    run_cycles("quic", cycles(300), test_seed(2132), false);
}

TEST(ChaosSoak, hosts_that_are_cut_off) {
    if (::geteuid() != 0 || !testing::has_ip_command()) {
        GTEST_SKIP() << "no namespaces for this user, or no ip command; run as root";
    }
    run_cycles("quic", cycles(200), test_seed(2133), true);
}

TEST(ChaosSoak, survivors_keep_nothing_of_members_that_were_in_shared_memory) {
    run_scenario({.ranks = 4,
                  .link = "auto",
                  .cycles = cycles(300),
                  .seed = test_seed(2136),
                  .only = Fault::Kind::kill});
}

TEST(ChaosSoak, survivors_keep_nothing_of_members_on_quic) {
    run_scenario({.ranks = 4,
                  .link = "quic",
                  .cycles = cycles(300),
                  .seed = test_seed(2137),
                  .only = Fault::Kind::kill});
}

TEST(ChaosSoak, hundred_evicted_members_change_nothing) {
    evict_and_continue("auto", 100, test_seed(2134));
}

TEST(ChaosSoak, restarts_of_the_seed_fail_no_operation) {
    restart_the_seed(span_from("NEXAR_CHAOS_SPAN", std::chrono::minutes(10)),
                     std::chrono::seconds(10));
}

TEST(ChaosSoak, loss_and_load_evict_nobody) {
    load_everything(span_from("NEXAR_CHAOS_SPAN", std::chrono::hours(1)), 64, test_seed(2135));
}

}  // namespace
}  // namespace nexar::chaos

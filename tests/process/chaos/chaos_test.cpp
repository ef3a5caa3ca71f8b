// A few faults on real processes. chaos_soak_tests runs thousands, of every kind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <nexar/error.hpp>
#include <set>
#include <string>

#include "process/chaos/scenario.hpp"
#include "support/network_namespace.hpp"
#include "support/sanitized.hpp"
#include "support/seed.hpp"

namespace nexar::chaos {
namespace {

using ::testing::ElementsAre;

// Together these contain every kind of fault.

Scenario in_shared_memory() {
    return {.ranks = 5, .link = "auto", .cycles = 5, .seed = 2112};
}

Scenario on_quic() {
    return {.ranks = 5, .link = "quic", .cycles = 3, .seed = 2203};
}

Scenario on_hosts() {
    return {.ranks = 5, .link = "quic", .cycles = 2, .seed = 2103, .with_cuts = true};
}

/// The same with another seed, if the user gave one.
Scenario as_requested(Scenario scenario) {
    scenario.seed = test_seed(scenario.seed);
    return scenario;
}

TEST(Chaos, schedules_contain_every_kind_of_fault) {
    std::set<Fault::Kind> kinds;
    for (const Scenario& one : {in_shared_memory(), on_quic(), on_hosts()}) {
        for (const Fault& fault : schedule(one.seed, one.cycles, one.with_cuts)) {
            kinds.insert(fault.kind);
        }
    }
    using enum Fault::Kind;
    EXPECT_THAT(kinds, ElementsAre(kill, kill_two, kill_again, kill_during_join, kill_joiner, stop,
                                   pause, cut));
}

TEST(Chaos, same_seed_gives_same_schedule) {
    const auto once = schedule(77, 50, true);
    const auto again = schedule(77, 50, true);
    ASSERT_EQ(once.size(), again.size());
    for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(describe(once[i]), describe(again[i]));
}

TEST(Chaos, ranks_in_shared_memory_survive_faults) {
    run_scenario(as_requested(in_shared_memory()));
}

TEST(Chaos, ranks_with_quic_survive_faults) {
    run_scenario(as_requested(on_quic()));
}

/// Members are killed and replaced; one that never fails must not keep what it had of them. These
/// runs are too short to forget old views (3 KB per world), and a QUIC connection (90 KB, one per
/// member that joined, so 45 KB per world) may still be closing when a world begins. The limit
/// allows for three of those; it finds connections that are kept for good. In shared memory a peer
/// has less heap, and the test finds mappings and descriptors; Churn in engine_allocation_tests
/// counts its bytes.
void expect_nothing_kept(const std::string& link, std::uint64_t seed) {
    if (testing::kSanitized) GTEST_SKIP() << "sanitizers keep freed memory";
    run_scenario(
        {.ranks = 3,
         .link = link,
         .cycles = 16,
         .seed = seed,
         .only = Fault::Kind::kill,
         .rules = {.warm_up_worlds = 6, .most_heap_per_world = 20 * 1024, .fewest_worlds = 20}});
}

TEST(Chaos, survivor_keeps_no_mappings_of_members_that_were_in_shared_memory) {
    expect_nothing_kept("auto", test_seed(2104));
}

TEST(Chaos, survivor_keeps_no_memory_of_members_on_quic) {
    expect_nothing_kept("quic", test_seed(2105));
}

TEST(Chaos, ranks_on_hosts_that_are_cut_off_survive_faults) {
    if (!testing::has_ip_command()) GTEST_SKIP() << "no ip command; install iproute2";
    std::unique_ptr<Networks> networks;
    try {
        networks = std::make_unique<Networks>(7);
    } catch (const Error& error) {
        if (error.code() != Errc::unsupported) throw;
        GTEST_SKIP() << "no namespaces for this user; run as root (" << error.what() << ")";
    }
    run_scenario(as_requested(on_hosts()), networks.get());
}

}  // namespace
}  // namespace nexar::chaos

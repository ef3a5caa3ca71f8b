#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "sim/membership_planted.hpp"
#include "sim/membership_relays.hpp"

namespace nexar::testing {
namespace {

class Planted : public ::testing::TestWithParam<PlantedBug> {};

INSTANTIATE_TEST_SUITE_P(Membership, Planted, ::testing::ValuesIn(kPlantedBugs),
                         [](const ::testing::TestParamInfo<PlantedBug>& one) {
                             return std::string(one.param.name);
                         });

TEST_P(Planted, bug_is_found) {
    constexpr std::uint64_t kOtherSeeds = 100;
    const PlantedBug& bug = GetParam();
    for (std::uint64_t i = 0; i <= kOtherSeeds; ++i) {
        const std::uint64_t seed = i == 0 ? bug.seed : i;
        const std::optional<std::string> found = finding(bug, seed);
        if (!found) continue;
        std::printf("%s: found by seed %llu: %s\n", bug.name.data(),
                    static_cast<unsigned long long>(seed), found->c_str());
        return;
    }
    FAIL() << bug.name << " was not found by seed " << bug.seed << " or seeds 1 to " << kOtherSeeds;
}

TEST(PlantedRelays, member_behind_dead_relays_is_evicted_if_its_neighbours_have_no_say) {
    EXPECT_TRUE(evicted_behind_dead_relays().empty());
    membership::planted_bug = membership::Bug::dead_relay_accuses;
    EXPECT_EQ(evicted_behind_dead_relays(), std::vector<std::size_t>{15});
    membership::planted_bug = membership::Bug::none;
}

}  // namespace
}  // namespace nexar::testing

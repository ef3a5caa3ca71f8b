#include <gtest/gtest.h>

#include <cstdio>

#include "sim/membership_planted.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

class PlantedSoak : public ::testing::TestWithParam<PlantedBug> {};

INSTANTIATE_TEST_SUITE_P(Membership, PlantedSoak, ::testing::ValuesIn(kPlantedBugs),
                         [](const ::testing::TestParamInfo<PlantedBug>& one) {
                             return std::string(one.param.name);
                         });

TEST_P(PlantedSoak, bug_is_found_by_several_seeds) {
    constexpr std::uint64_t kSeeds = 1000;
    const PlantedBug& bug = GetParam();
    const std::uint64_t first = test_seed(1);
    unsigned found = 0;
    for (std::uint64_t seed = first; seed < first + kSeeds && found < 5; ++seed) {
        const std::optional<std::string> what = finding(bug, seed);
        if (!what) continue;
        ++found;
        std::printf("%s: seed %llu: %s\n", bug.name.data(), static_cast<unsigned long long>(seed),
                    what->c_str());
    }
    EXPECT_GE(found, 2U) << bug.name;
}

}  // namespace
}  // namespace nexar::testing

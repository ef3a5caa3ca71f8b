#include <gtest/gtest.h>

#include <cstdio>

#include "sim/membership_planted.hpp"

namespace nexar::testing {
namespace {

class Planted : public ::testing::TestWithParam<PlantedBug> {};

INSTANTIATE_TEST_SUITE_P(Membership, Planted, ::testing::ValuesIn(kPlantedBugs),
                         [](const ::testing::TestParamInfo<PlantedBug>& one) {
                             return std::string(one.param.name);
                         });

TEST_P(Planted, bug_is_found) {
    constexpr std::uint64_t kOtherSeeds = 100;
    const auto& [bug, name, known] = GetParam();
    for (std::uint64_t i = 0; i <= kOtherSeeds; ++i) {
        const std::uint64_t seed = i == 0 ? known : i;
        const std::optional<std::string> found = finding(bug, seed);
        if (!found) continue;
        std::printf("%s: found by seed %llu: %s\n", name.data(),
                    static_cast<unsigned long long>(seed), found->c_str());
        return;
    }
    FAIL() << name << " was not found by seed " << known << " or seeds 1 to " << kOtherSeeds;
}

}  // namespace
}  // namespace nexar::testing

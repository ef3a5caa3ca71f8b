#include "base/pool_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nexar {
namespace {

using testing::HasSubstr;

std::vector<std::size_t> limits(const PoolProfile& profile) {
    std::vector<std::size_t> all;
    for (const PoolTier& tier : profile.tiers()) all.push_back(tier.limit_bytes);
    return all;
}

std::vector<std::size_t> kept(const PoolProfile& profile) {
    std::vector<std::size_t> all;
    for (const PoolTier& tier : profile.tiers()) all.push_back(tier.keep);
    return all;
}

TEST(PoolProfile, has_the_tiers_of_training_and_inference) {
    const std::vector<std::size_t> both{65536, 8388608, 67108864, 268435456};
    EXPECT_EQ(limits(PoolProfile::training()), both);
    EXPECT_EQ(limits(PoolProfile::inference()), both);
    EXPECT_EQ(kept(PoolProfile::training()), (std::vector<std::size_t>{256, 32, 16, 4}));
    EXPECT_EQ(kept(PoolProfile::inference()), (std::vector<std::size_t>{256, 16, 4, 0}));
    EXPECT_EQ(PoolProfile::training().tiers()[0].name, "small");
    EXPECT_EQ(PoolProfile::inference().tiers()[3].name, "giant");
}

TEST(PoolProfileBuilder, accepts_tiers_up_to_its_limits) {
    PoolProfileBuilder builder;
    builder.tier("page", 4096, 0).tier("most", std::size_t{64} << 30, 65536);
    const auto profile = builder.build();
    ASSERT_TRUE(profile) << profile.error().what();
    EXPECT_EQ(limits(*profile), (std::vector<std::size_t>{4096, std::size_t{64} << 30}));
    EXPECT_EQ(kept(*profile), (std::vector<std::size_t>{0, 65536}));
}

std::string refusal(const PoolProfileBuilder& builder) {
    const auto profile = builder.build();
    if (profile) return "accepted";
    EXPECT_EQ(profile.error().code(), Errc::invalid_argument);
    return profile.error().cause();
}

TEST(PoolProfileBuilder, rejects_too_few_or_too_many_tiers) {
    EXPECT_THAT(refusal(PoolProfileBuilder()), HasSubstr("0 tiers; it must have 1 to 8"));
    PoolProfileBuilder many;
    for (std::size_t i = 0; i < 9; ++i) {
        many.tier("tier" + std::to_string(i), std::size_t{4096} << i, 1);
    }
    EXPECT_THAT(refusal(many), HasSubstr("9 tiers; it must have 1 to 8"));
}

TEST(PoolProfileBuilder, rejects_limits_that_are_not_a_power_of_two_in_range) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{2048}, std::size_t{4097},
                                    std::size_t{12288}, std::size_t{128} << 30}) {
        const std::string cause = refusal(PoolProfileBuilder().tier("odd", bytes, 1));
        EXPECT_THAT(cause, HasSubstr("tier \"odd\" has a limit of " + std::to_string(bytes)));
        EXPECT_THAT(cause, HasSubstr("must be a power of two from 4096 (4 KiB)"));
    }
}

TEST(PoolProfileBuilder, rejects_limits_that_do_not_ascend) {
    for (const std::size_t second : {8192U, 4096U}) {
        EXPECT_THAT(refusal(PoolProfileBuilder().tier("a", 8192, 1).tier("b", second, 1)),
                    HasSubstr("after tier \"a\" with 8192; limits must ascend"));
    }
}

TEST(PoolProfileBuilder, rejects_too_many_idle_buffers) {
    EXPECT_THAT(refusal(PoolProfileBuilder().tier("a", 8192, 65537)),
                HasSubstr("tier \"a\" keeps 65537 buffers; it may keep 0 to 65536"));
}

TEST(PoolProfileBuilder, rejects_ambiguous_names) {
    EXPECT_THAT(refusal(PoolProfileBuilder().tier("a", 4096, 1).tier("a", 8192, 1)),
                HasSubstr("two pool tiers are named \"a\""));
    for (const char* const name : {"", "unpooled", "total"}) {
        EXPECT_THAT(refusal(PoolProfileBuilder().tier(name, 4096, 1)),
                    HasSubstr("tier 1 is named \"" + std::string(name) + '"'));
    }
}

}  // namespace
}  // namespace nexar

#include "base/counter_registry.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace nexar {
namespace {

using testing::HasSubstr;

TEST(CounterRegistry, snapshot_is_sorted_by_name_and_has_unit_and_help) {
    CounterRegistry registry;
    Counter* const sent = *registry.add({.name = "sent", .unit = "bytes", .help = "Bytes sent."});
    Counter* const lost = *registry.add({.name = "lost", .unit = "frames", .help = "Frames lost."});
    sent->add(40);
    sent->add();
    lost->add(7);

    const auto readings = registry.snapshot();
    ASSERT_EQ(readings.size(), 2U);
    EXPECT_EQ(readings[0].name, "lost");
    EXPECT_EQ(readings[0].value, 7U);
    EXPECT_EQ(readings[0].unit, "frames");
    EXPECT_EQ(readings[0].help, "Frames lost.");
    EXPECT_EQ(readings[1].name, "sent");
    EXPECT_EQ(readings[1].value, 41U);
    EXPECT_EQ(sent->value(), 41U);
    EXPECT_EQ(sent->spec().unit, "bytes");
}

TEST(CounterRegistry, accepts_only_snake_case_names) {
    CounterRegistry registry;
    const std::string longest(CounterRegistry::kMaxNameLength, 'x');
    for (const std::string& good : {std::string("a"), std::string("a1_b2"), longest}) {
        EXPECT_TRUE(registry.add({.name = good})) << good;
    }
    for (const std::string& bad : {std::string(), std::string("Sent"), std::string("1st"),
                                   std::string("_a"), std::string("a_"), std::string("a__b"),
                                   std::string("a-b"), std::string("a b"), longest + "x"}) {
        const auto refused = registry.add({.name = bad});
        ASSERT_FALSE(refused) << bad;
        EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
        EXPECT_THAT(refused.error().cause(), HasSubstr('"' + bad + '"'));
        EXPECT_THAT(refused.error().cause(), HasSubstr("snake_case"));
    }
    EXPECT_EQ(registry.snapshot().size(), 3U);
}

TEST(CounterRegistry, rejects_duplicate_names) {
    CounterRegistry registry;
    Counter* const first = *registry.add({.name = "sent", .help = "first"});
    first->add(3);
    const auto second = registry.add({.name = "sent", .help = "second"});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), Errc::invalid_argument);
    EXPECT_THAT(second.error().cause(), HasSubstr("\"sent\" exists already"));
    ASSERT_EQ(registry.snapshot().size(), 1U);
    EXPECT_EQ(registry.snapshot().front().help, "first");
    EXPECT_EQ(registry.snapshot().front().value, 3U);
}

TEST(CounterRegistry, is_bounded_and_keeps_counter_addresses_stable) {
    CounterRegistry registry;
    Counter* const first = *registry.add({.name = "c0"});
    for (std::size_t i = 1; i < CounterRegistry::kMaxCounters; ++i) {
        ASSERT_TRUE(registry.add({.name = fmt::format("c{}", i)}));
    }
    const auto refused = registry.add({.name = "one_more"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::limit_exceeded);
    EXPECT_THAT(refused.error().cause(), HasSubstr("at most 1024"));
    first->add(9);
    EXPECT_EQ(registry.snapshot().front().value, 9U);
}

}  // namespace
}  // namespace nexar

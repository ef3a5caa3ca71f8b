#include "link/common/write_order.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/random.hpp"
#include "support/seed.hpp"

namespace nexar::link {
namespace {

constexpr ClassSet kAll = 0x3f;

TEST(WriteOrder, serves_lanes_before_payload_and_higher_before_lower) {
    const WriteOrder order;
    for (unsigned set = 1; set <= kAll; ++set) {
        unsigned first = 0;
        while ((set >> first & 1U) == 0) ++first;
        EXPECT_EQ(order.next(static_cast<ClassSet>(set)), static_cast<WriteClass>(first));
    }
    EXPECT_EQ(order.next(0), std::nullopt);
    EXPECT_EQ(write_class(port::Lane::eager), WriteClass::eager);
    EXPECT_EQ(write_class(port::Priority::critical), WriteClass::critical);
    EXPECT_EQ(write_class(port::Priority::bulk), WriteClass::bulk);
}

std::map<WriteClass, std::size_t> shares(WriteOrder& order, ClassSet ready, std::size_t total,
                                         Random& random) {
    std::map<WriteClass, std::size_t> written;
    for (std::size_t sum = 0; sum < total;) {
        const WriteClass chosen = *order.next(ready);
        const std::size_t bytes = 1 + random.below(9000);
        order.wrote(chosen, bytes, ready);
        written[chosen] += bytes;
        sum += bytes;
    }
    return written;
}

TEST(WriteOrder, every_waiting_class_gets_its_floor_under_any_load) {
    Random random(test_seed(1));
    for (unsigned set = 1; set <= kAll; ++set) {
        WriteOrder order;
        constexpr std::size_t kTotal = 20'000'000;
        const auto written = shares(order, static_cast<ClassSet>(set), kTotal, random);
        std::optional<WriteClass> first;
        for (unsigned i = 0; i < kWriteClasses; ++i) {
            if ((set >> i & 1U) == 0) continue;
            const auto chosen = static_cast<WriteClass>(i);
            ASSERT_TRUE(written.contains(chosen)) << set << " " << i;
            if (!first) {
                first = chosen;
                // Five lower classes at 5 % each leave most of the bytes to the first one.
                EXPECT_GE(written.at(chosen), kTotal * 7 / 10) << set;
            } else {
                std::size_t above = 0;
                for (const auto& [other, bytes] : written) above += other < chosen ? bytes : 0;
                EXPECT_GE(written.at(chosen) * 100, above * 45 / 10) << set << " " << i;
                EXPECT_LE(written.at(chosen) * 100, above * 6) << set << " " << i;
            }
        }
    }
}

TEST(WriteOrder, a_waiting_class_is_served_before_half_a_megabyte_of_others) {
    WriteOrder order;
    const ClassSet ready = bit(WriteClass::control) | bit(WriteClass::bulk);
    std::size_t before = 0;
    while (*order.next(ready) == WriteClass::control) {
        order.wrote(WriteClass::control, 1200, ready);
        before += 1200;
        ASSERT_LE(before, 512U * 1024);
    }
    EXPECT_GT(before, 100'000U) << "its turns are not tiny either";
}

TEST(WriteOrder, an_idle_class_accumulates_no_credit) {
    WriteOrder order;
    const ClassSet without = bit(WriteClass::eager);
    for (int i = 0; i < 10'000; ++i) order.wrote(WriteClass::eager, 1200, without);
    const ClassSet with = without | bit(WriteClass::bulk);
    EXPECT_EQ(order.next(with), WriteClass::eager);
    for (int i = 0; i < 60; ++i) {
        EXPECT_EQ(order.next(with), WriteClass::eager) << i;
        order.wrote(WriteClass::eager, 1200, with);
    }
    // An idle class loses its credit.
    while (*order.next(with) == WriteClass::eager) order.wrote(WriteClass::eager, 1200, with);
    order.wrote(WriteClass::eager, 1200, without);
    EXPECT_EQ(order.next(with), WriteClass::eager);
}

}  // namespace
}  // namespace nexar::link

#include "link/sim/outlet.hpp"

#include <gtest/gtest.h>

#include <array>

#include "port/memory.hpp"
#include "support/link_end.hpp"
#include "unit/link/growing_source.hpp"

namespace nexar::sim {

namespace {

using nexar::testing::AskedSource;
using nexar::testing::GrowingSource;
using nexar::testing::pattern;

TEST(Outlet, sends_prefix_and_regions_in_pieces_of_any_size) {
    const auto prefix = pattern(1, 10);
    const auto content = pattern(2, 1000);
    const port::ConstBytes all(content);
    const std::array<port::ConstBytes, 4> regions{all.first(1), all.subspan(1, 0),
                                                  all.subspan(1, 600), all.subspan(601)};
    auto expected = prefix;
    expected.insert(expected.end(), content.begin(), content.end());
    for (const std::size_t piece : {1U, 7U, 11U, 640U, 5000U}) {
        port::MemorySource source(regions);
        Outlet outlet(port::StreamId(1), source, {.prefix = prefix}, true);
        outlet.set_limit(2000);
        ByteQueue bytes;
        while (outlet.sendable(0) != 0) {
            const auto wanted = std::min<std::size_t>(piece, outlet.sendable(0));
            EXPECT_EQ(outlet.send(wanted, bytes), wanted);
        }
        EXPECT_TRUE(outlet.end_due());
        const auto sent = bytes.view(0, bytes.end());
        EXPECT_TRUE(std::ranges::equal(sent, expected));
        outlet.check_source();
    }
}

TEST(Outlet, sends_no_more_than_the_window_allows) {
    const auto content = pattern(2, 1000);
    const std::array<port::ConstBytes, 1> regions{port::ConstBytes(content)};
    port::MemorySource source(regions);
    Outlet outlet(port::StreamId(1), source, {}, true);
    ByteQueue bytes;
    EXPECT_EQ(outlet.sendable(0), 0U);
    outlet.set_limit(100);
    EXPECT_EQ(outlet.send(outlet.sendable(0), bytes), 100U);
    EXPECT_EQ(outlet.sendable(0), 0U);
    EXPECT_FALSE(outlet.ready(0));
    outlet.acknowledge(100, 250);
    EXPECT_EQ(outlet.sendable(0), 150U);
}

TEST(Outlet, a_source_without_bytes_is_pending) {
    AskedSource source(pattern(3, 100), 40);
    Outlet outlet(port::StreamId(1), source, {}, true);
    outlet.set_limit(1000);
    ByteQueue bytes;
    EXPECT_EQ(outlet.send(100, bytes), 40U);
    EXPECT_EQ(outlet.send(60, bytes), 0U);
    EXPECT_TRUE(outlet.source_pending);
    EXPECT_FALSE(outlet.ready(0));
    EXPECT_EQ(bytes.end(), 40U);
}

TEST(Outlet, sends_only_the_ready_part_of_regions) {
    const auto prefix = pattern(1, 10);
    const auto content = pattern(2, 1000);
    auto expected = prefix;
    expected.insert(expected.end(), content.begin(), content.end());
    for (const std::size_t first_region : {0U, 1U, 600U, 1000U}) {
        GrowingSource source(content, first_region);
        Outlet outlet(port::StreamId(1), source, {.prefix = prefix}, true);
        outlet.set_limit(2000);
        ByteQueue bytes;
        for (const std::size_t step : {0U, 1U, 599U, 600U, 603U, 999U, 1000U}) {
            source.grow_to(step);
            outlet.source_pending = false;
            while (outlet.ready(0) && !outlet.end_due()) {
                outlet.send(std::min<std::size_t>(170, outlet.sendable(0)), bytes);
            }
            EXPECT_EQ(bytes.end(), prefix.size() + step);
            EXPECT_EQ(outlet.source_pending, step != content.size());
            EXPECT_EQ(outlet.end_due(), step == content.size());
        }
        EXPECT_TRUE(std::ranges::equal(bytes.view(0, bytes.end()), expected)) << first_region;
        outlet.check_source();
    }
}

TEST(OutletDeathTest, memory_that_changed_before_its_release_is_detected) {
    auto content = pattern(2, 1000);
    const std::array<port::ConstBytes, 1> regions{port::ConstBytes(content)};
    port::MemorySource source(regions);
    Outlet outlet(port::StreamId(1), source, {.prefix = pattern(1, 3)}, true);
    outlet.set_limit(503);
    ByteQueue bytes;
    outlet.send(503, bytes);
    // Bytes that were not sent may change, because nobody has read them.
    content[500] ^= std::byte{1};
    outlet.check_source();
    content[499] ^= std::byte{1};
    EXPECT_DEATH(outlet.check_source(), "changed before it was released");
}

}  // namespace

}  // namespace nexar::sim

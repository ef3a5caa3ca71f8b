#include "routing/parts.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "support/seed.hpp"

namespace nexar::routing::joining {
namespace {

using std::chrono::milliseconds;
using Packet = std::vector<std::byte>;

constexpr TimePoint kStart{std::chrono::seconds(7)};

Packet packet(std::uint32_t number, std::size_t size) {
    Packet bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(number * 31 + i * 7);
    return bytes;
}

Part part(std::uint32_t source, std::uint32_t number, bool second, const Packet& bytes) {
    const std::size_t first = (bytes.size() + 1) / 2;
    const std::span all(bytes);
    return {.source = Rank(source),
            .number = number,
            .second = second,
            .bytes = second ? all.subspan(first) : all.first(first)};
}

TEST(Parts, joins_two_parts_in_either_order) {
    Parts parts;
    for (const bool second_comes_first : {false, true}) {
        for (const unsigned size : {2U, 3U, 1199U, 1200U}) {
            const Packet sent = packet(5, size);
            Packet joined{std::byte{1}};
            EXPECT_EQ(parts.arrived(kStart, part(1, 5, second_comes_first, sent), joined),
                      Parts::Result::waits);
            EXPECT_EQ(parts.waiting_of(Rank(1)), 1U);
            EXPECT_EQ(parts.arrived(kStart, part(1, 5, !second_comes_first, sent), joined),
                      Parts::Result::joined);
            EXPECT_EQ(joined, sent);
            EXPECT_EQ(parts.waiting(), 0U);
            EXPECT_EQ(parts.sources(), 0U);
        }
    }
}

TEST(Parts, joins_only_parts_of_the_same_source_and_number) {
    Parts parts;
    const Packet sent = packet(5, 1000);
    Packet joined;
    EXPECT_EQ(parts.arrived(kStart, part(1, 5, false, sent), joined), Parts::Result::waits);
    EXPECT_EQ(parts.arrived(kStart, part(2, 5, true, sent), joined), Parts::Result::waits);
    EXPECT_EQ(parts.arrived(kStart, part(1, 6, true, sent), joined), Parts::Result::waits);
    EXPECT_EQ(parts.waiting(), 3U);
    EXPECT_EQ(parts.waiting_of(Rank(1)), 2U);
    EXPECT_EQ(parts.arrived(kStart, part(1, 5, true, sent), joined), Parts::Result::joined);
    EXPECT_EQ(joined, sent);
}

TEST(Parts, ignores_a_part_that_comes_twice) {
    Parts parts;
    const Packet sent = packet(5, 700);
    Packet joined;
    EXPECT_EQ(parts.arrived(kStart, part(1, 5, true, sent), joined), Parts::Result::waits);
    EXPECT_EQ(parts.arrived(kStart, part(1, 5, true, packet(9, 90)), joined),
              Parts::Result::dropped);
    EXPECT_EQ(parts.counts().repeated, 1U);
    EXPECT_EQ(parts.arrived(kStart, part(1, 5, false, sent), joined), Parts::Result::joined);
    EXPECT_EQ(joined, sent);
}

TEST(Parts, forgets_a_part_whose_other_part_does_not_come_in_time) {
    Parts parts({.longest = milliseconds(100)});
    const Packet sent = packet(5, 700);
    Packet joined;
    EXPECT_EQ(parts.next_deadline(), std::nullopt);
    parts.arrived(kStart, part(1, 5, false, sent), joined);
    parts.arrived(kStart + milliseconds(40), part(1, 6, false, sent), joined);
    EXPECT_EQ(parts.next_deadline(), kStart + milliseconds(100));
    parts.expire(kStart + milliseconds(100) - Duration(1));
    EXPECT_EQ(parts.waiting(), 2U);
    EXPECT_EQ(parts.arrived(kStart + milliseconds(100), part(1, 5, true, sent), joined),
              Parts::Result::waits);
    EXPECT_EQ(parts.counts().expired, 1U);
    EXPECT_EQ(parts.next_deadline(), kStart + milliseconds(140));
    parts.expire(kStart + milliseconds(200));
    EXPECT_EQ(parts.sources(), 0U);
    EXPECT_EQ(parts.next_deadline(), std::nullopt);
}

TEST(Parts, a_source_with_too_many_incomplete_packets_loses_its_oldest) {
    Parts parts({.per_source = 4, .total = 100});
    Packet joined;
    const Packet other = packet(1, 60);
    parts.arrived(kStart, part(2, 1, false, other), joined);
    for (std::uint32_t i = 0; i < 10; ++i) {
        parts.arrived(kStart, part(1, i, false, packet(i, 90)), joined);
        EXPECT_LE(parts.waiting_of(Rank(1)), 4U);
    }
    EXPECT_EQ(parts.counts().crowded_out, 6U);
    EXPECT_EQ(parts.arrived(kStart, part(1, 6, true, packet(6, 90)), joined),
              Parts::Result::joined);
    EXPECT_EQ(joined, packet(6, 90));
    EXPECT_EQ(parts.arrived(kStart, part(1, 5, true, packet(5, 90)), joined), Parts::Result::waits);
    EXPECT_EQ(parts.arrived(kStart, part(2, 1, true, other), joined), Parts::Result::joined);
}

TEST(Parts, all_sources_together_have_a_bound) {
    Parts parts({.per_source = 4, .total = 20});
    Packet joined;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        parts.arrived(kStart, part(i % 300, i, false, packet(i, 90)), joined);
        EXPECT_LE(parts.waiting(), 20U);
    }
    EXPECT_EQ(parts.counts().crowded_out, 980U);
    EXPECT_EQ(parts.sources(), 20U);
}

TEST(Parts, drops_parts_that_are_too_large_for_a_packet_that_may_be_split) {
    Parts parts;
    Packet joined;
    const Packet huge = packet(3, 2 * kMaxSplitBytes + 2);
    EXPECT_EQ(parts.arrived(kStart, part(1, 3, false, huge), joined), Parts::Result::dropped);
    const Packet large = packet(3, kMaxSplitBytes + 1);
    EXPECT_EQ(parts.arrived(kStart, part(1, 3, false, large), joined), Parts::Result::waits);
    EXPECT_EQ(parts.arrived(kStart, part(1, 3, true, large), joined), Parts::Result::dropped);
    EXPECT_EQ(parts.waiting(), 0U);
    EXPECT_EQ(parts.counts().too_large, 3U);
}

TEST(Parts, stay_within_their_bounds_whatever_arrives) {
    Random random(test_seed(21));
    for (int round = 0; round < 20; ++round) {
        Parts parts({.per_source = 5, .total = 30});
        const std::uint64_t numbers = 1 + random.below(40);
        TimePoint now = kStart;
        for (int step = 0; step < 1000; ++step) {
            if (random.chance(0.05)) now += milliseconds(random.below(60));
            const Packet bytes = packet(static_cast<std::uint32_t>(step), random.below(1400));
            const Part one{
                .source = Rank(static_cast<std::uint32_t>(random.below(12))),
                .number = static_cast<std::uint32_t>(random.below(numbers)) * 0x9e3779b9U,
                .second = random.chance(0.5),
                .bytes = bytes};
            Packet joined;
            const auto result = parts.arrived(now, one, joined);
            EXPECT_LE(joined.size(), kMaxSplitBytes);
            EXPECT_TRUE(result == Parts::Result::joined || joined.empty());
            EXPECT_LE(parts.waiting(), 30U);
            EXPECT_LE(parts.waiting_of(one.source), 5U);
            EXPECT_LE(parts.sources(), parts.waiting());
            const PartsCounts& counts = parts.counts();
            EXPECT_EQ(counts.parts, 2 * counts.joined + counts.repeated + counts.too_large +
                                        counts.crowded_out + counts.expired + parts.waiting());
        }
        parts.expire(now + milliseconds(100));
        EXPECT_EQ(parts.sources(), 0U);
    }
}

}  // namespace
}  // namespace nexar::routing::joining

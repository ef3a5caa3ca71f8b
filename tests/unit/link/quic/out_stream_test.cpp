#include "link/quic/out_stream.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "base/pool_profile.hpp"
#include "base/random.hpp"
#include "port/memory.hpp"
#include "support/quic_pair.hpp"
#include "support/seed.hpp"
#include "unit/link/growing_source.hpp"

namespace nexar::quic {
namespace {

using nexar::testing::AskedSource;
using nexar::testing::GrowingSource;
using nexar::testing::pattern;

std::vector<std::byte> shown(const OutStream& stream, std::size_t limit, std::size_t places) {
    std::vector<port::ConstBytes> pieces(places);
    const std::size_t used = stream.gather(pieces, limit);
    EXPECT_LE(used, places);
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < used; ++i) {
        EXPECT_FALSE(pieces[i].empty());
        bytes.insert(bytes.end(), pieces[i].begin(), pieces[i].end());
    }
    EXPECT_LE(bytes.size(), limit);
    return bytes;
}

/// Writes a stream to its end in random steps; returns the bytes in the order in which it wrote
/// them.
std::vector<std::byte> written(OutStream& stream, Random& random) {
    std::vector<std::byte> all;
    while (stream.ready()) {
        const auto bytes = shown(stream, 1 + random.below(5000), 2 + random.below(15));
        // Only a part fits into the packet.
        const std::size_t fits = random.chance(0.3) ? random.below(bytes.size() + 1) : bytes.size();
        const bool end = stream.ends_after(fits);
        all.insert(all.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(fits));
        stream.wrote(fits, end);
        if (random.chance(0.5)) stream.acknowledged(stream.written());
    }
    return all;
}

class OutStreamTest : public ::testing::Test {
protected:
    BufferPool pool_{PoolProfile::inference()};
};

TEST_F(OutStreamTest, gathers_any_mix_of_regions_in_order) {
    Random random(test_seed(6));
    for (int round = 0; round < 300; ++round) {
        std::vector<std::vector<std::byte>> memory;
        std::vector<port::ConstBytes> regions;
        std::vector<std::byte> content = pattern(random.next(), random.below(65));
        const std::vector<std::byte> prefix = content;
        for (std::uint64_t n = random.below(30); n > 0; --n) {
            memory.push_back(pattern(random.next(), random.chance(0.3) ? 0 : random.below(3000)));
        }
        for (const auto& piece : memory) {
            regions.emplace_back(piece);
            content.insert(content.end(), piece.begin(), piece.end());
        }
        port::MemorySource source(regions);
        OutStream stream(port::StreamId(1), source, {.prefix = prefix}, pool_);
        ASSERT_TRUE(written(stream, random) == content) << round;
        EXPECT_TRUE(stream.end_written());
    }
}

TEST_F(OutStreamTest, asks_a_source_for_each_byte_once) {
    Random random(test_seed(7));
    for (int round = 0; round < 50; ++round) {
        const auto content = pattern(random.next(), random.below(300'000));
        const auto prefix = pattern(random.next(), random.below(65));
        AskedSource source(content);
        OutStream stream(port::StreamId(1), source, {.prefix = prefix}, pool_);
        std::vector<std::byte> all = prefix;
        all.insert(all.end(), content.begin(), content.end());
        ASSERT_TRUE(written(stream, random) == all) << round;
        EXPECT_EQ(source.asked, content.size());
    }
}

TEST_F(OutStreamTest, waits_for_a_source_without_bytes) {
    AskedSource source(pattern(1, 1000), 0);
    OutStream stream(port::StreamId(1), source, {}, pool_);
    EXPECT_FALSE(stream.ready());
    EXPECT_TRUE(stream.source_pending);
    source.available = 10;
    EXPECT_FALSE(stream.ready()) << "until the source is woken";
    stream.source_pending = false;
    EXPECT_TRUE(stream.ready());
    EXPECT_EQ(shown(stream, 1000, 4).size(), 10U);
    stream.wrote(10, false);
    EXPECT_FALSE(stream.ready());
    EXPECT_FALSE(stream.ends_after(0));
}

TEST_F(OutStreamTest, gathers_only_the_ready_part_of_regions) {
    const auto content = pattern(5, 10'000);
    const auto prefix = pattern(6, 7);
    auto expected = prefix;
    expected.insert(expected.end(), content.begin(), content.end());
    for (const std::size_t first_region : {0U, 1U, 4000U, 10'000U}) {
        GrowingSource source(content, first_region);
        OutStream stream(port::StreamId(1), source, {.prefix = prefix}, pool_);
        std::vector<std::byte> all;
        for (const std::size_t step : {0U, 1U, 3999U, 4000U, 4003U, 9999U, 10'000U}) {
            source.grow_to(step);
            stream.source_pending = false;
            Random random(step);
            const auto bytes = written(stream, random);
            all.insert(all.end(), bytes.begin(), bytes.end());
            EXPECT_EQ(stream.written(), prefix.size() + step);
            EXPECT_EQ(stream.source_pending, step != content.size());
            EXPECT_EQ(stream.end_written(), step == content.size());
        }
        EXPECT_TRUE(all == expected) << first_region;
    }
}

TEST_F(OutStreamTest, waits_until_more_of_the_regions_is_ready) {
    GrowingSource source(pattern(5, 1000), 300);
    OutStream stream(port::StreamId(1), source, {}, pool_);
    EXPECT_FALSE(stream.ready());
    EXPECT_TRUE(stream.source_pending);
    source.grow_to(310);
    EXPECT_FALSE(stream.ready()) << "until the source is woken";
    stream.source_pending = false;
    EXPECT_TRUE(stream.ready());
    EXPECT_EQ(shown(stream, 1000, 4).size(), 310U);
    EXPECT_FALSE(stream.ends_after(310));
    stream.wrote(200, false);
    source.grow_to(1000);
    EXPECT_TRUE(stream.ready()) << "the rest of the first step";
    EXPECT_EQ(shown(stream, 1000, 4).size(), 800U);
    EXPECT_TRUE(stream.ends_after(800));
}

TEST_F(OutStreamTest, stages_a_bounded_amount_of_unacknowledged_bytes) {
    AskedSource source(pattern(1, 8 << 20));
    OutStream stream(port::StreamId(1), source, {}, pool_);
    std::size_t steps = 0;
    while (stream.ready()) {
        const auto bytes = shown(stream, 60'000, 16);
        if (bytes.empty()) break;
        stream.wrote(bytes.size(), stream.ends_after(bytes.size()));
        ASSERT_LT(++steps, 1000U);
    }
    EXPECT_LT(source.asked, OutStream::kMaxStagedBytes + 64 * 1024 + 1);
    EXPECT_LT(pool_.statistics().total.bytes_in_use, 2U << 20U);
    stream.acknowledged(stream.written());
    EXPECT_TRUE(stream.ready()) << "acknowledged bytes make room";
}

TEST_F(OutStreamTest, of_zero_bytes_still_writes_its_end) {
    const std::array<port::ConstBytes, 2> nothing{};
    port::MemorySource regions(nothing);
    port::MemorySource none({});
    for (port::Source* source :
         {static_cast<port::Source*>(&regions), static_cast<port::Source*>(&none)}) {
        OutStream stream(port::StreamId(1), *source, {}, pool_);
        ASSERT_TRUE(stream.ready());
        EXPECT_TRUE(shown(stream, 100, 4).empty());
        EXPECT_TRUE(stream.ends_after(0));
        stream.wrote(0, true);
        EXPECT_FALSE(stream.ready());
        EXPECT_TRUE(stream.all_acknowledged());
    }
}

TEST_F(OutStreamTest, a_cancelled_stream_has_nothing_to_write) {
    const auto bytes = pattern(1, 100);
    const std::array<port::ConstBytes, 1> regions{bytes};
    port::MemorySource source(regions);
    OutStream stream(port::StreamId(1), source, {}, pool_);
    ASSERT_TRUE(stream.ready());
    stream.outcome = port::SendOutcome::cancelled;
    EXPECT_FALSE(stream.ready());
}

TEST_F(OutStreamTest, a_lane_has_no_end_and_keeps_what_is_not_acknowledged) {
    OutStream lane(port::Lane::rpc, pool_);
    EXPECT_TRUE(lane.is_lane());
    EXPECT_FALSE(lane.ready());
    const auto bytes = pattern(1, 5000);
    const port::ConstBytes piece(bytes);
    ASSERT_TRUE(lane.append({&piece, 1}));
    EXPECT_TRUE(lane.ready());
    EXPECT_FALSE(lane.ends_after(5000));
    EXPECT_TRUE(shown(lane, 9000, 4) == bytes);
    lane.wrote(5000, false);
    EXPECT_FALSE(lane.ready());
    EXPECT_EQ(lane.queued_bytes(), 5000U);
    lane.acknowledged(2000);
    EXPECT_EQ(lane.queued_bytes(), 3000U);
    lane.acknowledged(5000);
    EXPECT_EQ(lane.queued_bytes(), 0U);
}

}  // namespace
}  // namespace nexar::quic

#include "link/shm/ring.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <vector>

#include "base/random.hpp"
#include "link/shm/memory.hpp"
#include "support/seed.hpp"

namespace nexar::shm {
namespace {

constexpr std::size_t kRing = std::size_t{64} * 1024;

struct Ring {
    RingMemory memory = RingMemory::make(kRing).value();
    SharedWord taken{0};
    RingWriter writer{memory.ring(), kRing, &taken};
    RingReader reader{memory.ring(), kRing};

    void write(std::uint8_t kind, std::span<const std::byte> bytes) {
        if (!bytes.empty()) std::memcpy(writer.content(), bytes.data(), bytes.size());
        writer.commit({.bytes = static_cast<std::uint32_t>(bytes.size()), .kind = kind});
    }
};

TEST(shm_ring, records_come_out_as_they_went_in_over_many_laps) {
    Ring ring;
    Random random(test_seed(20));
    std::deque<std::vector<std::byte>> written;
    std::uint64_t count = 0;
    while (ring.writer.written() < 50 * kRing) {
        const auto bytes = static_cast<std::size_t>(random.below(max_content(kRing) + 1));
        if (random.chance(0.5) && ring.writer.has_room(bytes)) {
            std::vector<std::byte> content(bytes, static_cast<std::byte>(++count));
            ring.write(1, content);
            written.push_back(std::move(content));
        } else if (const RecordHead head = ring.reader.head(); head.kind != 0) {
            const auto content = ring.reader.content(head);
            ASSERT_FALSE(written.empty());
            ASSERT_TRUE(std::ranges::equal(content, written.front()));
            written.pop_front();
            ring.reader.skip(head);
            ring.taken.store(ring.reader.read());
        } else {
            ASSERT_TRUE(written.empty());
        }
    }
}

TEST(shm_ring, a_full_ring_still_has_a_head_that_says_nothing_follows) {
    Ring ring;
    while (ring.writer.has_room(0)) ring.write(1, {});
    std::size_t read = 0;
    while (ring.reader.arrived()) {
        ring.reader.skip(ring.reader.head());
        ++read;
    }
    EXPECT_EQ(read, kRing / kHeadBytes - 1);
}

TEST(shm_ring, room_respects_the_reserve) {
    Ring ring;
    EXPECT_TRUE(ring.writer.has_room(1024, kRing - 1024 - 16));
    EXPECT_FALSE(ring.writer.has_room(1024, kRing - 1024 - 8));
    EXPECT_EQ(ring.writer.room(kRing), 0U);
    EXPECT_EQ(ring.writer.room(), kRing - 16);
}

TEST(shm_ring, a_reader_that_claims_too_much_or_goes_back_breaks_the_ring) {
    for (const std::uint64_t claim : {std::uint64_t{24}, std::uint64_t{0}, std::uint64_t{12},
                                      ~std::uint64_t{7}, std::uint64_t{1} << 63U}) {
        Ring ring;
        ring.write(1, {});
        ring.write(1, {});
        ring.taken.store(8);
        ring.writer.look();
        EXPECT_FALSE(ring.writer.broken());
        EXPECT_EQ(ring.writer.read(), 8U);
        ring.taken.store(claim);
        ring.writer.look();
        EXPECT_TRUE(ring.writer.broken()) << claim;
        EXPECT_EQ(ring.writer.read(), 8U);
    }
}

TEST(shm_ring, a_head_survives_its_word) {
    const RecordHead head{.bytes = 0x12345678, .kind = 9, .detail = 0xab, .zero = 0xcdef};
    const RecordHead again = RecordHead::from_word(head.word());
    EXPECT_EQ(again.bytes, head.bytes);
    EXPECT_EQ(again.kind, head.kind);
    EXPECT_EQ(again.detail, head.detail);
    EXPECT_EQ(again.zero, head.zero);
}

}  // namespace
}  // namespace nexar::shm

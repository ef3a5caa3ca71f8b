#include "link/quic/staged_bytes.hpp"

#include <gtest/gtest.h>

#include "base/pool_profile.hpp"
#include "base/random.hpp"
#include "support/quic_pair.hpp"
#include "support/seed.hpp"

namespace nexar::quic {
namespace {

using nexar::testing::pattern;

/// Allocates a number of blocks and then fails.
class ScarceMemory final : public PoolMemory {
public:
    PoolBlock allocate(std::size_t bytes) noexcept override {
        if (left == 0) return {};
        --left;
        return system_memory().allocate(bytes);
    }
    void release(std::byte* block, std::size_t bytes) noexcept override {
        system_memory().release(block, bytes);
    }

    std::size_t left = 0;
};

class StagedBytesTest : public ::testing::Test {
protected:
    std::vector<std::byte> whole() const {
        std::vector<std::byte> bytes;
        for (std::uint64_t at = staged_.begin(); at < staged_.end();) {
            const auto piece = staged_.at(at);
            EXPECT_FALSE(piece.empty());
            bytes.insert(bytes.end(), piece.begin(), piece.end());
            at += piece.size();
        }
        return bytes;
    }

    BufferPool pool_{PoolProfile::inference()};
    StagedBytes staged_{pool_};
};

TEST_F(StagedBytesTest, matches_a_plain_string_under_random_operations) {
    Random random(test_seed(4));
    std::vector<std::byte> model;
    std::uint64_t begin = 0;
    for (int i = 0; i < 3000; ++i) {
        if (random.chance(0.4)) {
            std::vector<std::vector<std::byte>> content;
            std::vector<port::ConstBytes> pieces;
            for (std::uint64_t n = random.below(4); n > 0; --n) {
                content.push_back(
                    pattern(random.next(), random.below(i % 50 == 0 ? 200'000 : 900)));
            }
            for (const auto& piece : content) {
                pieces.emplace_back(piece);
                model.insert(model.end(), piece.begin(), piece.end());
            }
            ASSERT_TRUE(staged_.append(pieces));
        } else if (random.chance(0.5)) {
            auto room = staged_.room();
            ASSERT_TRUE(room);
            ASSERT_FALSE(room->empty());
            const auto bytes = pattern(random.next(), random.below(room->size() + 1));
            std::ranges::copy(bytes, room->begin());
            staged_.commit(bytes.size());
            model.insert(model.end(), bytes.begin(), bytes.end());
        } else {
            const std::uint64_t n = random.below(model.size() + 1);
            begin += n;
            staged_.release_to(begin);
            model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(n));
        }
        ASSERT_EQ(staged_.begin(), begin);
        ASSERT_EQ(staged_.end(), begin + model.size());
        ASSERT_EQ(staged_.size(), model.size());
        ASSERT_TRUE(whole() == model) << i;
    }
}

TEST_F(StagedBytesTest, bytes_keep_their_place_until_they_are_released) {
    const auto first = pattern(1, 40'000);
    const port::ConstBytes piece(first);
    ASSERT_TRUE(staged_.append({&piece, 1}));
    const std::byte* before = staged_.at(30'000).data();
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(staged_.append({&piece, 1}));
    staged_.release_to(29'000);
    EXPECT_EQ(staged_.at(30'000).data(), before);
    EXPECT_EQ(staged_.at(30'000).front(), first[30'000]);
}

TEST_F(StagedBytesTest, returns_all_buffers_except_the_last) {
    const auto bytes = pattern(1, 1'000'000);
    const port::ConstBytes piece(bytes);
    ASSERT_TRUE(staged_.append({&piece, 1}));
    EXPECT_GE(pool_.statistics().total.bytes_in_use, 1'000'000U);
    staged_.release_to(staged_.end());
    EXPECT_LE(pool_.statistics().total.bytes_in_use, 64U * 1024);
    staged_.clear();
    EXPECT_EQ(pool_.statistics().total.bytes_in_use, 0U);
    EXPECT_EQ(staged_.begin(), 1'000'000U);
}

TEST_F(StagedBytesTest, append_takes_all_or_nothing) {
    ScarceMemory memory;
    BufferPool pool(PoolProfile::inference(), memory);
    StagedBytes staged(pool);
    const auto bytes = pattern(1, 200'000);
    const port::ConstBytes piece(bytes);
    memory.left = 2;
    const auto refused = staged.append({&piece, 1});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::out_of_memory);
    EXPECT_EQ(staged.size(), 0U);
    memory.left = 100;
    ASSERT_TRUE(staged.append({&piece, 1}));
    EXPECT_EQ(staged.size(), bytes.size());
    EXPECT_EQ(staged.at(0).front(), bytes.front());
}

}  // namespace
}  // namespace nexar::quic

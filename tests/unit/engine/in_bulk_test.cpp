#include "engine/in_bulk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/pool_profile.hpp"
#include "engine/peer.hpp"
#include "support/link_end.hpp"
#include "support/said.hpp"

namespace nexar::engine {
namespace {

using nexar::testing::operator+;
using nexar::testing::pattern;
using nexar::testing::stream_of;
using Bytes = nexar::testing::Bytes;

constexpr std::size_t kSize = 60;
constexpr std::uint64_t kBehind = wire::kBulkPreambleBytes;

class InBulkTest : public ::testing::Test, public InBulk::Owner {
protected:
    InBulkTest() {
        message_.bytes = kSize;
        message_.bulk = true;
        receive_.content = {&region_, 1};
    }
    ~InBulkTest() override { store_.end(message_); }

    void named(InBulk& stream, port::ConstBytes preamble) override {
        names_.emplace_back(preamble.begin(), preamble.end());
        if (knows_) stream.message = &message_;
    }
    void overran(InBulk& stream) override {
        ++overruns_;
        stream.refused = true;
    }

    std::size_t write(std::uint64_t offset, const Bytes& bytes) {
        return stream_.write(offset, bytes);
    }

    BufferPool pool_{PoolProfile::inference()};
    MessageStore store_{pool_};
    InMessage& message_ = store_.make();
    const Bytes whole_ = stream_of(ContextId(3), 9) + pattern(1, kSize);
    Bytes memory_ = Bytes(100);
    port::Bytes region_{memory_};
    ReceiveOperation receive_{};
    Peer peer_{NodeId(), Amount{}};
    InBulk stream_{*this, peer_, port::StreamId(5)};
    std::vector<Bytes> names_;
    int overruns_ = 0;
    bool knows_ = true;
};

TEST_F(InBulkTest, names_its_message_once_when_its_preamble_is_whole) {
    for (std::size_t cut = 0; cut <= whole_.size(); ++cut) {
        SCOPED_TRACE(cut);
        InBulk stream(*this, peer_, port::StreamId(6));
        names_.clear();
        message_.receiver = &receive_;
        std::ranges::fill(memory_, std::byte{0});
        const auto bytes = port::ConstBytes(whole_);
        EXPECT_EQ(stream.write(0, bytes.first(cut)), cut);
        EXPECT_EQ(names_.size(), cut >= kBehind ? 1U : 0U);
        EXPECT_EQ(stream.write(cut, bytes.subspan(cut)), whole_.size() - cut);
        ASSERT_EQ(names_.size(), 1U);
        EXPECT_EQ(names_[0], stream_of(ContextId(3), 9));
        EXPECT_EQ(Bytes(memory_.begin(), memory_.begin() + kSize), pattern(1, kSize));
    }
    EXPECT_EQ(overruns_, 0);
}

TEST_F(InBulkTest, takes_its_preamble_alone_while_its_message_is_not_known) {
    knows_ = false;
    EXPECT_EQ(write(0, whole_), kBehind);
    EXPECT_EQ(write(kBehind, pattern(1, 10)), 0U);
    EXPECT_TRUE(stream_.region(kBehind, 10).empty());
    stream_.message = &message_;
    message_.receiver = &receive_;
    EXPECT_EQ(write(kBehind, pattern(1, 10)), 10U);
}

TEST_F(InBulkTest, keeps_the_beginning_with_the_message_while_nobody_receives_it) {
    ASSERT_TRUE(store_.reserve(message_, 40));
    EXPECT_EQ(write(0, whole_), kBehind + 40);
    EXPECT_EQ(message_.received, 40U);
    EXPECT_EQ(write(kBehind + 40, Bytes(20)), 0U) << "the rest waits in the link";
    const port::Bytes kept = MessageStore::storage(message_);
    EXPECT_EQ(Bytes(kept.begin(), kept.end()), pattern(1, 40));
    EXPECT_TRUE(stream_.region(kBehind, 10).empty());
}

TEST_F(InBulkTest, takes_nothing_without_room_for_it) {
    EXPECT_EQ(write(0, whole_), kBehind);
    EXPECT_EQ(message_.received, 0U);
}

TEST_F(InBulkTest, offers_the_memory_of_its_receive_up_to_the_size_of_the_message) {
    message_.receiver = &receive_;
    EXPECT_TRUE(stream_.region(0, 100).empty()) << "the preamble is not the receive's";
    write(0, stream_of(ContextId(3), 9));
    EXPECT_TRUE(stream_.region(kBehind - 1, 100).empty());
    const port::Bytes all = stream_.region(kBehind, 1000);
    EXPECT_EQ(all.data(), memory_.data());
    EXPECT_EQ(all.size(), kSize);
    EXPECT_EQ(stream_.region(kBehind + 50, 1000).size(), 10U);
    EXPECT_EQ(stream_.region(kBehind + 50, 3).size(), 3U);
    EXPECT_TRUE(stream_.region(kBehind + kSize, 1).empty());
    EXPECT_TRUE(stream_.region(~std::uint64_t{0}, 1).empty());
}

TEST_F(InBulkTest, a_piece_beyond_the_size_is_an_overrun_of_which_nothing_is_written) {
    message_.receiver = &receive_;
    write(0, stream_of(ContextId(3), 9) + pattern(1, kSize - 1));
    EXPECT_EQ(overruns_, 0);
    EXPECT_EQ(write(kBehind + kSize - 1, pattern(2, 2)), 2U);
    EXPECT_EQ(overruns_, 1);
    EXPECT_EQ(memory_[kSize - 1], std::byte{0});
    EXPECT_EQ(memory_[kSize], std::byte{0});
    // It is refused now: what comes is passed over.
    EXPECT_EQ(write(kBehind + kSize + 1, pattern(2, 50)), 50U);
    EXPECT_EQ(overruns_, 1);
}

TEST_F(InBulkTest, the_end_of_a_message_is_no_overrun) {
    message_.receiver = &receive_;
    write(0, whole_);
    EXPECT_EQ(write(kBehind + kSize, Bytes()), 0U);
    EXPECT_EQ(overruns_, 0);
    EXPECT_EQ(write(kBehind + kSize, Bytes(1)), 1U);
    EXPECT_EQ(overruns_, 1);
}

}  // namespace
}  // namespace nexar::engine

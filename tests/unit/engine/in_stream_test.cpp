#include "engine/in_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/pool_profile.hpp"
#include "engine/messages.hpp"
#include "engine/peer.hpp"
#include "support/fake_link.hpp"
#include "support/link_end.hpp"
#include "support/said.hpp"

namespace nexar::engine {
namespace {

using nexar::testing::operator+;
using nexar::testing::FakeLink;
using nexar::testing::pattern;
using nexar::testing::stream_of;
using ::testing::HasSubstr;
using Bytes = nexar::testing::Bytes;

constexpr std::size_t kSize = 60;
constexpr std::uint64_t kPayloadAt = wire::kBulkPreambleBytes;

/// A stream whose payload is a message that one receive, or none, has matched.
class InStreamTest : public ::testing::Test, public Services, public Transfers::Owner {
protected:
    InStreamTest() {
        message_.messages = &messages_;
        message_.peer = &peer_;
        message_.bytes = kSize;
        message_.bulk = true;
        receive_.content = {&region_, 1};
    }
    ~InStreamTest() override {
        stream_.ignore();
        store_.end(message_);
    }

    void want(Peer& /*peer*/) override {}
    bool introduce(Pair& /*pair*/) override { return true; }
    bool say_end(Pair& /*pair*/) override { return true; }

    Result<LanePayload> on_frame(Peer& /*peer*/, const wire::FrameHeader& /*header*/,
                                 port::ConstBytes /*body*/) override {
        return LanePayload{};
    }
    Result<Awaited> look_up(Peer& /*peer*/, const TransferName& name) override {
        names_.push_back(name);
        message_.stream = nullptr;
        if (!knows_) return Awaited{.state = Awaited::State::not_yet};
        return Awaited{.state = Awaited::State::known, .receiver = &message_};
    }
    void on_writable(Peer& /*peer*/, port::Lane /*lane*/) override {}
    void on_down(Peer& /*peer*/, const Error& /*reason*/) override {}

    std::size_t write(std::uint64_t offset, const Bytes& bytes) {
        return stream_.write(offset, bytes);
    }
    bool overran() const {
        const auto& violation = peer_.transfers.violation();
        if (violation) {
            EXPECT_THAT(violation->cause(), HasSubstr("longer than its header said"));
        }
        return violation.has_value();
    }

    static MessageLimits limits() {
        MessageLimits limits;
        limits.bulk_head = 40;
        return limits;
    }

    BufferPool pool_{PoolProfile::inference()};
    MessageStore store_{pool_};
    InMessage& message_ = store_.make();
    const Bytes whole_ = stream_of(ContextId(3), 9) + pattern(1, kSize);
    Bytes memory_ = Bytes(100);
    port::Bytes region_{memory_};
    ReceiveOperation receive_{};
    Messages messages_{*this, limits(), pool_};
    Transfers transfers_{*this, {}};
    Peer peer_{transfers_, NodeId(), Amount{}};
    FakeLink link_{port::LinkId(1), {}};
    PeerLink& connect() {
        peer_.transfers.connect(link_);
        return *peer_.transfers.links()[0];
    }
    InStream stream_{peer_.transfers, connect(), port::StreamId(5)};
    std::vector<TransferName> names_;
    bool knows_ = true;
};

TEST_F(InStreamTest, names_its_payload_once_when_its_preamble_is_complete) {
    for (std::size_t cut = 0; cut <= whole_.size(); ++cut) {
        SCOPED_TRACE(cut);
        InStream stream(peer_.transfers, *peer_.transfers.links()[0], port::StreamId(6));
        names_.clear();
        message_.receiver = &receive_;
        message_.streamed = 0;
        std::ranges::fill(memory_, std::byte{0});
        const auto bytes = port::ConstBytes(whole_);
        EXPECT_EQ(stream.write(0, bytes.first(cut)), cut);
        EXPECT_EQ(names_.size(), cut >= kPayloadAt ? 1U : 0U);
        EXPECT_EQ(stream.write(cut, bytes.subspan(cut)), whole_.size() - cut);
        ASSERT_EQ(names_.size(), 1U);
        EXPECT_EQ(
            names_[0],
            (TransferName{.kind = TransferKind::message, .context = ContextId(3), .number = 9}));
        EXPECT_EQ(stream.name(), names_[0]);
        EXPECT_EQ(Bytes(memory_.begin(), memory_.begin() + kSize), pattern(1, kSize));
    }
    EXPECT_FALSE(overran());
}

TEST_F(InStreamTest, takes_only_its_preamble_until_the_header_arrives) {
    knows_ = false;
    EXPECT_EQ(write(0, whole_), kPayloadAt);
    EXPECT_EQ(write(kPayloadAt, pattern(1, 10)), 0U);
    EXPECT_TRUE(stream_.region(kPayloadAt, 10).empty());
    EXPECT_TRUE(peer_.transfers.is_early(names_.at(0)));
    message_.receiver = &receive_;
    peer_.transfers.expect(names_[0], message_);
    EXPECT_EQ(message_.stream, &stream_);
    EXPECT_FALSE(peer_.transfers.is_early(names_[0]));
    EXPECT_EQ(write(kPayloadAt, pattern(1, 10)), 10U);
}

TEST_F(InStreamTest, buffers_the_head_in_the_message_while_no_receive_matches) {
    EXPECT_EQ(write(0, whole_), kPayloadAt + 40);
    EXPECT_EQ(message_.received, 40U);
    EXPECT_EQ(write(kPayloadAt + 40, Bytes(20)), 0U) << "the rest waits in the link";
    const port::Bytes kept = MessageStore::storage(message_);
    EXPECT_EQ(Bytes(kept.begin(), kept.end()), pattern(1, 40));
    EXPECT_TRUE(stream_.region(kPayloadAt, 10).empty());
}

TEST_F(InStreamTest, takes_no_payload_without_room_for_the_head) {
    Messages without_room(*this, {}, pool_);
    message_.messages = &without_room;
    EXPECT_EQ(write(0, whole_), kPayloadAt);
    EXPECT_EQ(message_.received, 0U);
}

TEST_F(InStreamTest, offers_the_memory_of_its_receive_up_to_the_size_of_the_message) {
    message_.receiver = &receive_;
    EXPECT_TRUE(stream_.region(0, 100).empty()) << "the preamble is not part of the payload";
    write(0, stream_of(ContextId(3), 9));
    EXPECT_TRUE(stream_.region(kPayloadAt - 1, 100).empty());
    const port::Bytes all = stream_.region(kPayloadAt, 1000);
    EXPECT_EQ(all.data(), memory_.data());
    EXPECT_EQ(all.size(), kSize);
    EXPECT_EQ(stream_.region(kPayloadAt + 50, 1000).size(), 10U);
    EXPECT_EQ(stream_.region(kPayloadAt + 50, 3).size(), 3U);
    EXPECT_TRUE(stream_.region(kPayloadAt + kSize, 1).empty());
    EXPECT_TRUE(stream_.region(~std::uint64_t{0}, 1).empty());
}

TEST_F(InStreamTest, writes_nothing_of_a_piece_that_exceeds_the_size) {
    message_.receiver = &receive_;
    write(0, stream_of(ContextId(3), 9) + pattern(1, kSize - 1));
    EXPECT_FALSE(overran());
    EXPECT_EQ(write(kPayloadAt + kSize - 1, pattern(2, 2)), 2U);
    EXPECT_TRUE(overran());
    EXPECT_TRUE(stream_.refused());
    EXPECT_EQ(memory_[kSize - 1], std::byte{0});
    EXPECT_EQ(memory_[kSize], std::byte{0});
    EXPECT_EQ(write(kPayloadAt + kSize + 1, pattern(2, 50)), 50U)
        << "the bytes of a refused stream are dropped";
    EXPECT_EQ(memory_[kSize], std::byte{0});
}

TEST_F(InStreamTest, accepts_an_empty_write_but_no_byte_after_the_end) {
    message_.receiver = &receive_;
    write(0, whole_);
    EXPECT_EQ(write(kPayloadAt + kSize, Bytes()), 0U);
    EXPECT_FALSE(overran());
    EXPECT_EQ(write(kPayloadAt + kSize, Bytes(1)), 1U);
    EXPECT_TRUE(overran());
}

}  // namespace
}  // namespace nexar::engine

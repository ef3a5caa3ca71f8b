#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>

#include "samples.hpp"
#include "support/allocations.hpp"
#include "wire/codec.hpp"
#include "wire/plain_envelope.hpp"

/// Counts the codec's heap allocations: frequent messages must cause none, nor may the length in a
/// hostile frame.
namespace nexar::wire {
namespace {

using ::nexar::testing::Allocations;
using testing::Bytes;

/// Heap bytes of an error: its text twice (cause and what), the shared state and fmt's buffers.
constexpr std::size_t kErrorBytes = 2048;

template <class Message>
std::size_t allocations_of_a_round_trip() {
    const auto message = testing::example<Message>();
    std::array<std::byte, 512> room{};
    const Allocations heap;
    const auto written = encode(message, std::span<std::byte>(room));
    const auto header = decode_frame_header(room);
    const auto decoded = decode_body<Message>(
        *header, std::span<const std::byte>(room).subspan(kFrameHeaderBytes, header->body_bytes));
    const std::size_t calls = heap.count();
    EXPECT_TRUE(written && decoded && decoded->message == message);
    return calls;
}

TEST(Allocation, is_counted) {
    const Allocations heap;
    const std::string text(100, 'x');
    EXPECT_EQ(heap.count(), 1U);
    EXPECT_GT(heap.bytes(), text.size());
}

TEST(Allocation, is_none_for_frequent_messages) {
    EXPECT_EQ(allocations_of_a_round_trip<EagerHeader>(), 0U);
    EXPECT_EQ(allocations_of_a_round_trip<BulkHeader>(), 0U);
    EXPECT_EQ(allocations_of_a_round_trip<CollectiveHeader>(), 0U);
    EXPECT_EQ(allocations_of_a_round_trip<Heartbeat>(), 0U);
    EXPECT_EQ(allocations_of_a_round_trip<Suspicion>(), 0U);
    EXPECT_EQ(allocations_of_a_round_trip<Revoke>(), 0U);
    EXPECT_EQ(allocations_of_a_round_trip<Credit>(), 0U);
}

TEST(Allocation, is_none_for_an_envelope) {
    Bytes datagram = testing::encoded(testing::example<EnvelopeFrame>());
    const Allocations heap;
    const auto view = decode_envelope(datagram);
    set_hops(datagram, 3);
    const auto front = encode_envelope(*view, view->packet.size());
    const std::size_t calls = heap.count();
    EXPECT_EQ(view->packet.size(), 1U);
    EXPECT_EQ(front.size(), kEnvelopeBytes);
    EXPECT_EQ(calls, 0U);
}

TEST(Allocation, is_none_for_a_preamble) {
    std::array<std::byte, kBulkPreambleBytes> room{};
    const Preamble preamble{.lane = Lane::bulk, .context = ContextId(3), .sequence = Sequence(4)};
    const Allocations heap;
    const auto written = encode(preamble, std::span<std::byte>(room));
    const auto size = preamble_size(room);
    const auto decoded = decode_preamble(room);
    const std::size_t calls = heap.count();
    EXPECT_TRUE(written && size && decoded && *decoded == preamble);
    EXPECT_EQ(calls, 0U);
}

TEST(Allocation, an_excessive_length_allocates_only_the_error) {
    const auto refused_bytes = [](Bytes bytes, std::size_t at, std::byte low, std::byte high) {
        bytes.at(at) = low;
        bytes.at(at + 1) = high;
        const Allocations heap;
        const auto decoded = decode_frame(bytes);
        const std::size_t taken = heap.bytes();
        EXPECT_FALSE(decoded);
        return taken;
    };
    constexpr std::byte kAll{0xff};
    const Bytes hello = testing::encoded(testing::example<Hello>());
    EXPECT_LT(refused_bytes(hello, 8 + 18, kAll, kAll), kErrorBytes) << "software";
    const Bytes grant = testing::encoded(testing::example<Grant>());
    EXPECT_LT(refused_bytes(grant, 8 + 24, kAll, kAll), kErrorBytes) << "link";
    const Bytes welcome = testing::encoded(testing::example<Welcome>());
    EXPECT_LT(refused_bytes(welcome, 8 + 37, kAll, kAll), kErrorBytes) << "settings";
    EXPECT_LT(refused_bytes(welcome, 8 + 37, std::byte{0}, std::byte{1}), kErrorBytes)
        << "256 settings are allowed, but their bytes are missing";
    EXPECT_LT(refused_bytes(welcome, 6, kAll, kAll), kErrorBytes) << "body_bytes";
    const Bytes mismatch = testing::encoded(testing::example<CollectiveMismatch>());
    EXPECT_LT(refused_bytes(mismatch, 8 + 24, kAll, kAll), kErrorBytes) << "description";
    const Bytes abort = testing::encoded(testing::example<CollectiveAbort>());
    EXPECT_LT(refused_bytes(abort, 8 + 23, kAll, kAll), kErrorBytes) << "text";
    // What a stranger may send to a seed.
    const Bytes request = testing::encoded(testing::example<JoinRequest>());
    EXPECT_LT(refused_bytes(request, 6, kAll, kAll), kErrorBytes) << "body_bytes";
    EXPECT_LT(refused_bytes(request, 8 + 48, kAll, kAll), kErrorBytes) << "signing_request";
    EXPECT_LT(refused_bytes(request, 8 + 55, kAll, kAll), kErrorBytes) << "host";
    EXPECT_LT(refused_bytes(request, 8 + 62, kAll, kAll), kErrorBytes) << "addresses";
}

TEST(Allocation, missing_bytes_of_many_entries_allocate_only_the_error) {
    const auto refused_bytes = [](Bytes bytes, std::size_t at) {
        bytes.at(at) = std::byte{0x00};
        bytes.at(at + 1) = std::byte{0x40};  // 16384 entries are allowed
        const Allocations heap;
        const auto decoded = decode_frame(bytes);
        const std::size_t taken = heap.bytes();
        EXPECT_FALSE(decoded);
        return taken;
    };
    const Bytes view = testing::encoded(testing::example<ViewFrame>());
    EXPECT_LT(refused_bytes(view, 8 + 36), kErrorBytes) << "members of a view";
    const Bytes empty = testing::encoded(ViewFrame{.epoch = Epoch(1)});
    EXPECT_LT(refused_bytes(empty, 8 + 38), kErrorBytes) << "spent tokens of a view";
    EXPECT_LT(refused_bytes(empty, 8 + 40), kErrorBytes) << "ranks that left";
    const Bytes ballot =
        testing::encoded(Ballot{.step = BallotStep::accept,
                                .epoch = Epoch(1),
                                .number = {.round = 1},
                                .view = std::vector<ViewFrame>(1, ViewFrame{.epoch = Epoch(1)})});
    EXPECT_LT(refused_bytes(ballot, 8 + 57), kErrorBytes) << "views of a ballot";
    EXPECT_LT(refused_bytes(ballot, 8 + 59 + 36), kErrorBytes + sizeof(ViewFrame))
        << "members of the view of a ballot";
    const Bytes tokens = testing::encoded(testing::example<StoredTokens>());
    EXPECT_LT(refused_bytes(tokens, 8 + 0), kErrorBytes) << "tokens";
    const Bytes seed = testing::encoded(testing::example<StoredSeed>());
    EXPECT_LT(refused_bytes(seed, 8 + 36), kErrorBytes) << "members of a seed";
}

TEST(Allocation, is_bounded_for_the_largest_welcome) {
    Welcome welcome;
    for (std::size_t i = 0; i < kMaxSettings; ++i) {
        std::string name(kMaxSettingNameBytes, 'x');
        name[0] = static_cast<char>('a' + i / 16);
        name[1] = static_cast<char>('a' + i % 16);
        welcome.settings.push_back({name, std::string(kMaxSettingValueBytes, 'y'),
                                    std::string(kMaxSettingOriginBytes, 'z')});
    }
    const Bytes bytes = testing::encoded(welcome);
    const Allocations heap;
    const auto decoded = decode_frame(bytes);
    const std::size_t taken = heap.bytes();
    ASSERT_TRUE(decoded);
    EXPECT_LT(taken, 2 * bytes.size());
}

}  // namespace
}  // namespace nexar::wire

// Point-to-point messages at full size: 10 GB, 10 million messages, and one message of 5 GiB. The
// last test takes 10 GiB of memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "process/p2p/flood_scenario.hpp"
#include "process/p2p/member.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {
namespace {

constexpr Duration kSoakWithin = patience(std::chrono::seconds(600));
constexpr std::uint64_t kTenGigabytes = 10'000'000'000;

TEST(P2pSoak, receiver_withstands_ten_million_unwanted_messages_of_8_bytes) {
    withstands_unwanted_messages(
        {.message_bytes = 8, .messages = scaled(10'000'000), .within = kSoakWithin});
}

TEST(P2pSoak, receiver_withstands_ten_gigabytes_of_unwanted_messages_of_64_kib) {
    constexpr std::size_t kBytes = std::size_t{64} << 10U;
    withstands_unwanted_messages({.message_bytes = kBytes,
                                  .messages = scaled(kTenGigabytes) / kBytes,
                                  .within = kSoakWithin});
}

TEST(P2pSoak, receiver_withstands_ten_gigabytes_of_unwanted_messages_of_16_mib) {
    constexpr std::size_t kBytes = std::size_t{16} << 20U;
    withstands_unwanted_messages({.message_bytes = kBytes,
                                  .messages = scaled(kTenGigabytes) / kBytes,
                                  .within = kSoakWithin});
}

/// The memory of one long message, in which every byte depends on its position.
class LongMessage {
public:
    explicit LongMessage(std::size_t bytes) : bytes_(bytes, 1) {}

    std::span<std::uint8_t> bytes() { return bytes_; }

    void fill() {
        for_each_piece([](std::span<std::byte> piece, std::span<const std::byte> expected) {
            std::ranges::copy(expected, piece.begin());
            return true;
        });
    }

    bool is_right() {
        return for_each_piece([](std::span<std::byte> piece, std::span<const std::byte> expected) {
            return std::memcmp(piece.data(), expected.data(), piece.size()) == 0;
        });
    }

private:
    template <class Call>
    bool for_each_piece(Call call) {
        std::vector<std::byte> expected(std::size_t{1} << 20U);
        auto rest = std::as_writable_bytes(std::span(bytes_));
        for (std::uint64_t at = 0; !rest.empty();) {
            const auto piece = rest.first(std::min(rest.size(), expected.size()));
            fill_pattern(23, at, std::span(expected).first(piece.size()));
            if (!call(piece, std::span(expected).first(piece.size()))) return false;
            at += piece.size();
            rest = rest.subspan(piece.size());
        }
        return true;
    }

    std::vector<std::uint8_t> bytes_;
};

TEST(P2pSoak, a_message_of_5_gib_arrives_byte_for_byte) {
    constexpr std::size_t kBytes = (std::size_t{5} << 30U) + 12'345;
    const auto bytes = static_cast<std::size_t>(scaled(kBytes));
    const auto deadline = std::chrono::steady_clock::now() + kSoakWithin;
    const TestCluster cluster;
    ChildProcess receiver([&](const Channel& sender) {
        const auto member = join_as_child(cluster, sender);
        LongMessage message(bytes);
        Growth growth;
        auto receive = member->world().recv(message.bytes(), 1, 1);
        const Status status = finish(receive, deadline);
        growth.look();
        if (status.bytes != bytes) throw Error(Errc::malformed, "the message has the wrong size");
        if (!message.is_right()) throw Error(Errc::malformed, "the message has the wrong content");
        sender.say(std::to_string(growth.most()));
        await(sender, "leave", kSoakWithin);
        member->node().close();
    });
    const auto member = join_as_parent(cluster, receiver.channel());
    LongMessage message(bytes);
    message.fill();
    Growth growth;
    const auto begin = std::chrono::steady_clock::now();
    auto send = member->world().send(message.bytes(), 0, 1);
    finish(send, deadline);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    growth.look();
    EXPECT_TRUE(message.is_right()) << "nexar changed the sender's memory";
    const std::size_t theirs = std::stoull(hear(receiver.channel(), kSoakWithin));
    std::printf("%zu bytes in %.2f s; the sender grew by %zu kB, the receiver by %zu kB\n", bytes,
                took.count(), growth.most() / 1000, theirs / 1000);
    receiver.channel().say("leave");
    EXPECT_EQ(receiver.wait(), 0);
    if (kSanitized) return;
    EXPECT_LE(growth.most(), std::size_t{64} << 20U);
    EXPECT_LE(theirs, std::size_t{64} << 20U);
}

}  // namespace
}  // namespace nexar::testing

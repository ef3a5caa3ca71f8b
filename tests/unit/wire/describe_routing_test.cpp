#include "wire/describe_routing.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "describe_checks.hpp"

/// The limits and rules of the messages that reach members that are not connected.
namespace nexar::wire {
namespace {

using testing::Bytes;
using testing::changed;
using testing::encoded;
using testing::example;
using testing::expect_accepted;
using testing::expect_not_encoded;
using testing::expect_refused;
using testing::patched;

constexpr std::size_t kEpochAt = 12;
constexpr std::size_t kVersionAt = 20;
constexpr std::size_t kCountAt = 28;
constexpr std::size_t kDownAt = 30;

std::vector<Rank> ranks_from(std::uint32_t first, std::size_t count) {
    std::vector<Rank> ranks;
    for (std::size_t i = 0; i < count; ++i) {
        ranks.emplace_back(first + static_cast<std::uint32_t>(i));
    }
    return ranks;
}

TEST(Envelope, limits_its_ranks) {
    const auto m = example<EnvelopeFrame>();
    for (const std::size_t at : {std::size_t{0}, std::size_t{4}}) {
        const std::string field = at == 0 ? "source" : "target";
        expect_accepted(patched(m, at, kMaxRank, 4));
        expect_refused(patched(m, at, kMaxRank + 1U, 4), Errc::limit_exceeded,
                       "envelope: " + field + " is 2147483647");
    }
    expect_not_encoded(changed<EnvelopeFrame>([](auto& x) { x.source = Rank(kMaxRank + 1); }),
                       "source");
}

TEST(Envelope, must_not_have_its_source_as_target) {
    expect_refused(patched(example<EnvelopeFrame>(), 4, 3, 4), Errc::malformed,
                   "envelope: target is 3; it must not be the source");
    expect_not_encoded(changed<EnvelopeFrame>([](auto& x) { x.target = x.source; }), "target is 3");
}

TEST(Envelope, limits_its_hops) {
    const auto m = example<EnvelopeFrame>();
    for (const unsigned hops : {1U, 64U}) expect_accepted(patched(m, 8, hops, 1));
    expect_refused(patched(m, 8, 0, 1), Errc::malformed, "hops is 0; it must be at least 1");
    for (const unsigned hops : {65U, 255U}) {
        expect_refused(patched(m, 8, hops, 1), Errc::limit_exceeded, "it must be at most 64");
    }
    expect_not_encoded(changed<EnvelopeFrame>([](auto& x) { x.hops = 0; }), "hops is 0");
}

TEST(Envelope, has_at_most_two_parts) {
    const auto m = example<EnvelopeFrame>();
    for (unsigned part = 0; part <= 2; ++part) expect_accepted(patched(m, 9, part, 1));
    expect_refused(patched(m, 9, 3, 1), Errc::limit_exceeded, "part is 3; it must be at most 2");
    expect_not_encoded(changed<EnvelopeFrame>([](auto& x) { x.part = 3; }), "part is 3");
}

TEST(Envelope, limits_its_packet) {
    expect_not_encoded(changed<EnvelopeFrame>([](auto& x) { x.packet.clear(); }),
                       "packet is 0; it must be at least 1");
    const auto with = [](std::size_t bytes) {
        return changed<EnvelopeFrame>([&](auto& x) { x.packet.assign(bytes, std::byte{7}); });
    };
    expect_accepted(encoded(with(kMaxPacketBytes)));
    expect_not_encoded(with(kMaxPacketBytes + 1), "packet has 65536 bytes; the limit is 65535");
    Bytes body = encoded(with(kMaxPacketBytes));
    body.erase(body.begin(), body.begin() + kFrameHeaderBytes);
    body.push_back(std::byte{7});
    expect_refused(testing::frame(FrameType::envelope, body), Errc::limit_exceeded,
                   "envelope: packet has 65536 bytes; the limit is 65535");
    body.resize(16);
    expect_refused(testing::frame(FrameType::envelope, body), Errc::malformed,
                   "envelope: the input ends inside packet: 0 left, 1 needed");
}

TEST(LinkState, limits_its_origin) {
    const auto m = changed<LinkState>([](auto& x) { x.down.clear(); });
    expect_accepted(patched(m, 0, kMaxRank, 4));
    expect_refused(patched(m, 0, kMaxRank + 1U, 4), Errc::limit_exceeded, "link_state: origin");
}

TEST(LinkState, needs_an_epoch_and_a_version) {
    const auto m = example<LinkState>();
    for (const std::size_t at : {kEpochAt, kVersionAt}) {
        expect_accepted(patched(m, at, ~std::uint64_t{0}, 8));
        expect_refused(patched(m, at, 0, 8), Errc::malformed, "is 0; it must be at least 1");
    }
    expect_not_encoded(changed<LinkState>([](auto& x) { x.version = 0; }), "version is 0");
    expect_not_encoded(changed<LinkState>([](auto& x) { x.epoch = Epoch(0); }), "epoch is 0");
}

TEST(LinkState, has_strictly_ascending_ranks) {
    const auto m = example<LinkState>();  // 2, 12
    const std::string words = "number of broken links is 2; their ranks must strictly ascend";
    expect_accepted(patched(m, kDownAt + 4, 4, 4));
    expect_refused(patched(m, kDownAt + 4, 2, 4), Errc::malformed, words);
    expect_refused(patched(m, kDownAt + 4, 1, 4), Errc::malformed, words);
    expect_not_encoded(changed<LinkState>([](auto& x) { std::swap(x.down[0], x.down[1]); }), words);
    expect_refused(patched(m, kDownAt + 4, kMaxRank + 1U, 4), Errc::limit_exceeded, "rank is");
}

TEST(LinkState, does_not_name_its_origin) {
    const std::string words = "origin is 3; it must not be the other end of a broken link";
    expect_refused(patched(example<LinkState>(), kDownAt, 3, 4), Errc::malformed, words);
    expect_not_encoded(changed<LinkState>([](auto& x) { x.down = {x.origin}; }), words);
}

TEST(LinkState, limits_the_number_of_broken_links) {
    const auto with = [](std::size_t count) {
        return changed<LinkState>([&](auto& x) { x.down = ranks_from(100, count); });
    };
    expect_accepted(encoded(with(0)));
    expect_accepted(encoded(with(kMaxDownLinks)));
    expect_not_encoded(with(kMaxDownLinks + 1), "number of broken links has 65 entries");
    expect_refused(patched(with(kMaxDownLinks), kCountAt, kMaxDownLinks + 1, 2),
                   Errc::limit_exceeded, "number of broken links has 65 entries; the limit is 64");
    EXPECT_EQ(encoded(with(kMaxDownLinks)).size(), kFrameHeaderBytes + 382);
    EXPECT_LE(382U, rules_of(FrameType::link_state)->max_body_bytes);
}

ClusterId cluster(unsigned char byte) {
    std::array<std::byte, ClusterId::kBytes> bytes{};
    bytes.fill(std::byte{byte});
    return ClusterId(bytes);
}

TEST(LinkState, signs_everything_before_the_signature) {
    std::set<Bytes> signed_ones;
    const auto add = [&](auto change) {
        return signed_ones.insert(signed_bytes(cluster(1), changed<LinkState>(change))).second;
    };
    EXPECT_TRUE(add([](auto&) {}));
    EXPECT_TRUE(add([](auto& x) { x.origin = Rank(4); }));
    EXPECT_TRUE(add([](auto& x) { x.incarnation = 7; }));
    EXPECT_TRUE(add([](auto& x) { x.epoch = Epoch(6); }));
    EXPECT_TRUE(add([](auto& x) { x.version = 10; }));
    EXPECT_TRUE(add([](auto& x) { x.down.pop_back(); }));
    EXPECT_TRUE(add([](auto& x) { x.key[31] = std::byte{0}; }));
    EXPECT_FALSE(add([](auto& x) { x.signature[0] = std::byte{0}; })) << "not the signature itself";
    EXPECT_TRUE(signed_ones.insert(signed_bytes(cluster(2), example<LinkState>())).second)
        << "another cluster";
}

TEST(LinkState, signs_a_prefix_of_its_own) {
    const Bytes bytes = signed_bytes(cluster(1), example<LinkState>());
    const std::string_view prefix("nexar link state 1\0", 19);
    ASSERT_EQ(bytes.size(), prefix.size() + 16 + 38 + 32);
    EXPECT_TRUE(std::ranges::equal(std::span(bytes).first(prefix.size()),
                                   std::as_bytes(std::span(prefix))));
}

TEST(FrameType, of_an_envelope_travels_only_in_datagrams) {
    EXPECT_EQ(static_cast<unsigned>(FrameType::envelope), 96U);
    EXPECT_EQ(static_cast<unsigned>(FrameType::link_state), 97U);
    for (unsigned lane = 0; lane < 256; ++lane) {
        EXPECT_FALSE(belongs_on(static_cast<Lane>(lane), FrameType::envelope)) << lane;
    }
    EXPECT_TRUE(belongs_in_datagram(FrameType::envelope));
    EXPECT_TRUE(belongs_on(Lane::control, FrameType::link_state));
    EXPECT_FALSE(belongs_on(Lane::seed, FrameType::link_state)) << "seeds are not routed through";
    EXPECT_FALSE(belongs_in_datagram(FrameType::link_state)) << "datagrams may be lost";
}

}  // namespace
}  // namespace nexar::wire

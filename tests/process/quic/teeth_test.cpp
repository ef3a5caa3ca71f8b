// Shows that the other tests detect wrong bytes, missing bytes, and memory that changes too early.

#include <gmock/gmock.h>

#include "process/quic/wire.hpp"

namespace nexar::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Payload kPayload{.seed = 77, .bytes = 100'003};

/// The prefix and the content, as sent over the network.
std::vector<std::byte> whole_payload() {
    std::vector<std::byte> bytes(Payload::kPrefixBytes + kPayload.bytes);
    std::ranges::copy(kPayload.prefix(), bytes.begin());
    fill_pattern(kPayload.seed, 0, std::span(bytes).subspan(Payload::kPrefixBytes));
    return bytes;
}

/// The verdict of a sink that got these bytes in uneven pieces.
std::string verdict_on(port::ConstBytes bytes) {
    HashingSink sink;
    for (std::size_t at = 0, size = 1; at < bytes.size(); at += size, size = size * 3 % 1009) {
        size = std::min(size, bytes.size() - at);
        sink.write(at, bytes.subspan(at, size));
    }
    return sink.verdict();
}

TEST(QuicTeeth, a_sink_accepts_what_was_announced_and_nothing_else) {
    auto bytes = whole_payload();
    EXPECT_EQ(verdict_on(bytes), "");
    EXPECT_THAT(verdict_on(std::span(bytes).first(bytes.size() - 1)), HasSubstr("100002 bytes"));
    EXPECT_THAT(verdict_on(std::span(bytes).first(9)), HasSubstr("less than the prefix"));
    bytes[50'000] ^= std::byte{1};
    EXPECT_THAT(verdict_on(bytes), HasSubstr("has the hash"));
    bytes[50'000] ^= std::byte{1};
    std::swap_ranges(bytes.begin() + 1000, bytes.begin() + 2000, bytes.begin() + 3000);
    EXPECT_THAT(verdict_on(bytes), HasSubstr("has the hash"));
}

TEST(QuicTeeth, a_pattern_is_the_same_from_every_offset) {
    std::vector<std::byte> whole(1000);
    fill_pattern(5, 0, whole);
    for (const std::size_t at : {1U, 7U, 8U, 501U}) {
        std::vector<std::byte> part(whole.size() - at);
        fill_pattern(5, at, part);
        EXPECT_TRUE(std::ranges::equal(part, std::span(whole).subspan(at))) << at;
    }
}

TEST(QuicTeeth, memory_overwritten_before_its_release_is_detected) {
    Wire wire;
    wire.connect();
    MemoryPayloadSource source(kPayload, {});
    const auto prefix = kPayload.prefix();
    wire.client_link().send(source, {.prefix = prefix});
    const std::vector<std::byte> kept = std::move(source).poison();
    ASSERT_TRUE(wire.driver.run_until([&] { return !wire.server.faults().empty(); },
                                      patience(std::chrono::seconds(20))))
        << wire.driver.describe();
    EXPECT_THAT(wire.server.faults(), ElementsAre(HasSubstr("has the hash")));
    EXPECT_TRUE(wire.server.received().empty());
}

}  // namespace
}  // namespace nexar::testing

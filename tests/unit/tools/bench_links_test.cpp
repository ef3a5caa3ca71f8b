#include "bench/links.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace nexar::bench {
namespace {

using ::testing::HasSubstr;

constexpr std::uint8_t kBoth = LinkUse::quic | LinkUse::shm;

/// The links of three ranks, given for the pairs 0-1, 0-2 and 1-2.
LinkUse three(std::uint8_t first, std::uint8_t second, std::uint8_t third) {
    return {3, {0, first, second, first, 0, third, second, third, 0}};
}

std::string refusal(const LinkUse& links, std::string_view wanted) {
    const auto result = links.require(wanted);
    return result ? "" : std::string(result.error().cause());
}

TEST(BenchLinks, text_names_one_kind_or_counts_pairs) {
    EXPECT_EQ(three(LinkUse::quic, LinkUse::quic, LinkUse::quic).text(), "quic");
    EXPECT_EQ(three(LinkUse::shm, LinkUse::shm, LinkUse::shm).text(), "shm");
    EXPECT_EQ(three(kBoth, kBoth, kBoth).text(), "shm+quic");
    EXPECT_EQ(three(LinkUse::shm, LinkUse::quic, LinkUse::quic).text(),
              "shm between 1 pair, quic between 2 pairs");
    EXPECT_EQ(three(LinkUse::none, LinkUse::quic, LinkUse::none).text(),
              "quic between 1 pair, none between 2 pairs");
    EXPECT_EQ(LinkUse(1, {0}).text(), "none");
}

TEST(BenchLinks, auto_accepts_every_link) {
    EXPECT_EQ(refusal(three(LinkUse::shm, LinkUse::quic, LinkUse::other), "auto"), "");
}

TEST(BenchLinks, a_required_kind_must_be_used_by_every_connected_pair) {
    EXPECT_EQ(refusal(three(LinkUse::shm, LinkUse::none, LinkUse::shm), "shm"), "");
    EXPECT_EQ(refusal(three(kBoth, LinkUse::shm, kBoth), "shm"), "");
    EXPECT_EQ(refusal(three(LinkUse::shm, LinkUse::shm, LinkUse::quic), "shm"),
              "the link shm is required, but ranks 1 and 2 use quic");
    EXPECT_EQ(refusal(three(LinkUse::quic, LinkUse::quic, LinkUse::quic), "quic"), "");
    EXPECT_THAT(refusal(three(LinkUse::quic, kBoth, LinkUse::quic), "quic"),
                HasSubstr("ranks 0 and 2 use shm+quic"));
}

}  // namespace
}  // namespace nexar::bench

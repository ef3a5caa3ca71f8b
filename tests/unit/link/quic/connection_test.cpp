#include "link/quic/connection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/quic_pair.hpp"
#include "support/seed.hpp"

namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::testing::bytes_of;
using nexar::testing::LinkEnd;
using nexar::testing::pattern;
using nexar::testing::QuicPair;
using nexar::testing::TestCluster;
using ::testing::HasSubstr;

TEST(connection_test, comes_up_on_both_sides_and_names_the_peers) {
    QuicPair pair;
    LinkEnd& client = pair.dial();
    EXPECT_FALSE(client.was_up());
    ASSERT_TRUE(pair.run_until([&] { return client.is_up(); }, 1s));
    EXPECT_EQ(client.link().peer(), QuicPair::cluster().identity(2));
    EXPECT_EQ(pair.server().link().peer(), QuicPair::cluster().identity(1));
}

TEST(connection_test, carries_a_payload_stream) {
    QuicPair pair;
    ASSERT_TRUE(pair.connect());
    const auto content = pattern(1, 3'000'000);
    const auto stream = pair.client().send(content, {.prefix = bytes_of("prefix")}, 7);
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 10s));
    EXPECT_EQ(pair.client().outcome(stream), port::SendOutcome::delivered);
    ASSERT_TRUE(pair.run_until([&] { return pair.server().finished() == 1; }, 10s));
    auto& got = pair.server().incoming(0).sink.bytes;
    ASSERT_EQ(got.size(), content.size() + 6);
    EXPECT_TRUE(std::equal(content.begin(), content.end(), got.begin() + 6));
}

}  // namespace
}  // namespace nexar::quic

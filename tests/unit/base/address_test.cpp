#include "base/address.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace nexar {
namespace {

using ::testing::HasSubstr;

Address address(std::string_view text) {
    return Address::parse(text).value();
}

TEST(Address, text_round_trips_through_parse) {
    for (const char* text : {"127.0.0.1:7400", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:7400",
                             "[::]:0", "[fe80::1:2]:1", "[2001:db8::ff]:65535"}) {
        EXPECT_EQ(address(text).text(), text);
    }
    EXPECT_EQ(address("[2001:0DB8:0::0:ff]:09").text(), "[2001:db8::ff]:9");
}

TEST(Address, parse_rejects_invalid_text_and_quotes_it) {
    for (const char* text :
         {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1: 1",
          "127.0.0.1:1x", "127.0.0:1", "256.0.0.1:1", "localhost:1", "::1:7400", "[::1]", "[::1:1",
          "[:::1]:1", "[127.0.0.1]:1", "127.0.0.1:+1", " 127.0.0.1:1"}) {
        const auto parsed = Address::parse(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().code(), Errc::invalid_argument);
        EXPECT_THAT(parsed.error().cause(), HasSubstr(text));
        EXPECT_THAT(parsed.error().cause(), HasSubstr("65535"));
    }
}

// The system's functions stop at a zero byte and would ignore the rest.
TEST(Address, parse_rejects_text_with_a_zero_byte) {
    using namespace std::string_literals;
    for (const std::string& text : {"127.0.0.1\0:1"s, "127.0.0.1\0 and more:1"s, "[::1\0]:1"s,
                                    "[::1\0x]:1"s, "127.0.0.1:1\0"s, "\0"s + "127.0.0.1:1"}) {
        EXPECT_FALSE(Address::parse(text)) << text;
    }
}

TEST(Address, round_trips_through_the_native_form) {
    for (const char* text : {"10.1.2.3:4", "[fd00::7]:9"}) {
        const Address one = address(text);
        const auto back = Address::from_native(one.native(), one.native_size());
        ASSERT_TRUE(back);
        EXPECT_EQ(*back, one);
    }
    const Address one = address("10.1.2.3:4");
    EXPECT_FALSE(Address::from_native(one.native(), 7));
    sockaddr local{};
    local.sa_family = AF_UNIX;
    EXPECT_FALSE(Address::from_native(&local, sizeof local));
}

TEST(Address, recognises_loopback_and_any) {
    EXPECT_TRUE(address("127.9.9.9:1").is_loopback());
    EXPECT_TRUE(address("[::1]:1").is_loopback());
    EXPECT_FALSE(address("128.0.0.1:1").is_loopback());
    EXPECT_FALSE(address("[::2]:1").is_loopback());
    EXPECT_TRUE(Address().is_any());
    EXPECT_TRUE(Address::any(true).is_any());
    EXPECT_TRUE(Address::any(true).is_v6());
    EXPECT_FALSE(Address::any(false).is_v6());
    EXPECT_FALSE(address("0.0.0.1:0").is_any());
}

TEST(Address, compares_host_and_port) {
    EXPECT_EQ(address("10.0.0.1:5"), address("10.0.0.1:5"));
    EXPECT_NE(address("10.0.0.1:5"), address("10.0.0.1:6"));
    EXPECT_NE(address("10.0.0.1:5"), address("10.0.0.2:5"));
    EXPECT_NE(address("[::]:5"), address("0.0.0.0:5"));
    EXPECT_TRUE(address("10.0.0.1:5").same_host(address("10.0.0.1:6")));
    EXPECT_EQ(address("[fd00::7]:9").with_port(77), address("[fd00::7]:77"));
    EXPECT_EQ(address("10.0.0.1:5").with_port(0).port(), 0);
    sockaddr_in6 scoped = address("[fe80::1]:5").v6();
    scoped.sin6_scope_id = 3;
    EXPECT_NE(Address(scoped), address("[fe80::1]:5"));
}

TEST(Address, ipv4_round_trips_through_its_mapped_form) {
    for (const char* text :
         {"10.1.2.3:4", "0.0.0.0:0", "255.255.255.255:65535", "127.0.0.1:7400"}) {
        const Address one = address(text);
        EXPECT_TRUE(one.mapped().is_v6());
        EXPECT_EQ(one.mapped().port(), one.port());
        EXPECT_EQ(one.mapped().native_size(), sizeof(sockaddr_in6));
        EXPECT_EQ(one.mapped().unmapped(), one);
        EXPECT_EQ(one.unmapped(), one);
        EXPECT_EQ(one.mapped().mapped(), one.mapped());
        EXPECT_NE(one.mapped(), one) << "the families differ";
    }
    EXPECT_EQ(address("10.1.2.3:4").mapped(), address("[::ffff:10.1.2.3]:4"));
    EXPECT_EQ(address("10.1.2.3:4").mapped().text(), "[::ffff:10.1.2.3]:4");
    EXPECT_EQ(address("[::ffff:a01:203]:4").unmapped().text(), "10.1.2.3:4");
}

TEST(Address, mapping_leaves_ipv6_unchanged) {
    for (const char* text :
         {"[::1]:7400", "[::]:0", "[fd00::7]:9", "[::10.1.2.3]:4", "[64:ff9b::a01:203]:4",
          "[::ffff:0:a01:203]:4", "[::fffe:a01:203]:4"}) {
        EXPECT_EQ(address(text).unmapped(), address(text)) << text;
        EXPECT_EQ(address(text).mapped(), address(text)) << text;
    }
    sockaddr_in6 scoped = address("[fe80::1]:5").v6();
    scoped.sin6_scope_id = 3;
    EXPECT_EQ(Address(scoped).unmapped().v6().sin6_scope_id, 3U);
    EXPECT_EQ(Address(scoped).mapped().v6().sin6_scope_id, 3U);
}

TEST(Address, prefix_groups_hosts_by_network) {
    EXPECT_EQ(address("10.1.2.3:4").prefix(), address("10.1.2.250:9").prefix());
    EXPECT_NE(address("10.1.2.3:4").prefix(), address("10.1.3.3:4").prefix());
    EXPECT_EQ(address("[2001:db8:1:200::1]:1").prefix(),
              address("[2001:db8:1:2ff:9::]:2").prefix());
    EXPECT_NE(address("[2001:db8:1:200::1]:1").prefix(), address("[2001:db8:1:300::1]:1").prefix());
    EXPECT_NE(address("0.0.0.0:1").prefix(), address("[::]:1").prefix());
}

}  // namespace
}  // namespace nexar

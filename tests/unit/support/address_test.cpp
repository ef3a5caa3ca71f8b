#include "support/udp_fault/address.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nexar::udp_fault {
namespace {

TEST(Address, description_round_trips_through_parse) {
    for (const char* text : {"127.0.0.1:7000", "10.1.2.3:0", "[::1]:65535", "[2001:db8::7]:1"}) {
        const auto address = Address::parse(text);
        ASSERT_TRUE(address.has_value()) << text;
        EXPECT_EQ(describe(*address), text);
    }
    EXPECT_EQ(*Address::parse("127.0.0.1:7000"), Address::loopback_v4(7000));
    EXPECT_EQ(*Address::parse("[::1]:7000"), Address::loopback_v6(7000));
    EXPECT_EQ(describe(Address{}), "(no address)");
}

TEST(Address, parse_rejects_invalid_text_and_shows_the_format) {
    for (const char* text :
         {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:+1", "::1:7000", "[::1]",
          "[]:1", "localhost:7000", "[127.0.0.1]:1", "1.2.3:4x", "127.0.0.1:-1", "[::1:7000"}) {
        const auto address = Address::parse(text);
        ASSERT_FALSE(address.has_value()) << text;
        EXPECT_THAT(address.error().cause(),
                    testing::HasSubstr("write it as 127.0.0.1:7000 or [::1]"));
        EXPECT_THAT(address.error().cause(), testing::HasSubstr(std::string("\"") + text));
    }
}

TEST(Address, differs_by_host_port_and_family) {
    const Address address = Address::loopback_v4(7);
    EXPECT_EQ(address.port(), 7);
    EXPECT_NE(address, Address::loopback_v4(8));
    EXPECT_NE(address, Address::loopback_v6(7));
    EXPECT_NE(address, *Address::parse("127.0.0.2:7"));
    EXPECT_EQ(address.with_port(8), Address::loopback_v4(8));
    EXPECT_EQ(Address::loopback_v6(1).with_port(9), Address::loopback_v6(9));
}

}  // namespace
}  // namespace nexar::udp_fault

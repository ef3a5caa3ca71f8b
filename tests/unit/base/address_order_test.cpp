#include "base/address_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nexar {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> ordered(const std::vector<std::string>& texts,
                                 const std::vector<std::string>& own_texts) {
    const auto parsed = [](const std::vector<std::string>& from) {
        std::vector<Address> all;
        for (const std::string& text : from) all.push_back(Address::parse(text).value());
        return all;
    };
    std::vector<std::string> result;
    for (const Address& one : best_first(parsed(texts), parsed(own_texts))) {
        result.push_back(one.text());
    }
    return result;
}

TEST(AddressOrder, puts_loopback_first_on_one_host) {
    EXPECT_THAT(ordered({"10.1.0.5:7", "[fd01::5]:7", "127.0.0.1:7", "[::1]:7"},
                        {"10.1.0.5:9", "[fd01::5]:9", "127.0.0.1:9", "[::1]:9"}),
                ElementsAre("127.0.0.1:7", "[::1]:7", "10.1.0.5:7", "[fd01::5]:7"));
}

TEST(AddressOrder, puts_loopback_last_for_another_host) {
    EXPECT_THAT(ordered({"127.0.0.1:7", "10.1.0.6:7", "[::1]:7", "[fd01::6]:7"},
                        {"10.1.0.5:9", "[fd01::5]:9", "127.0.0.1:9", "[::1]:9"}),
                ElementsAre("10.1.0.6:7", "[fd01::6]:7", "127.0.0.1:7", "[::1]:7"));
}

TEST(AddressOrder, prefers_shared_networks) {
    EXPECT_THAT(ordered({"172.20.3.1:7", "192.168.4.2:7", "10.1.0.6:7", "[fd02::6]:7"},
                        {"10.1.0.5:9", "192.168.4.1:9"}),
                ElementsAre("192.168.4.2:7", "10.1.0.6:7", "172.20.3.1:7", "[fd02::6]:7"));
}

TEST(AddressOrder, keeps_address_families_apart) {
    EXPECT_THAT(ordered({"10.1.0.6:7", "[fd01::6]:7"}, {"[fd01::5]:9"}),
                ElementsAre("[fd01::6]:7", "10.1.0.6:7"));
}

TEST(AddressOrder, ignores_an_address_that_every_host_has) {
    EXPECT_THAT(ordered({"172.17.0.1:7", "10.1.0.6:7", "127.0.0.1:7"},
                        {"172.17.0.1:9", "10.1.0.5:9", "127.0.0.1:9"}),
                ElementsAre("10.1.0.6:7", "127.0.0.1:7", "172.17.0.1:7"));
}

TEST(AddressOrder, recognises_the_same_host_despite_an_extra_address) {
    // The extra one may be the address that the seed observed.
    EXPECT_THAT(ordered({"172.17.0.1:7", "10.1.0.5:7", "127.0.0.1:7", "203.0.113.9:7"},
                        {"172.17.0.1:9", "10.1.0.5:9", "127.0.0.1:9"}),
                ElementsAre("127.0.0.1:7", "172.17.0.1:7", "10.1.0.5:7", "203.0.113.9:7"));
}

TEST(AddressOrder, is_stable_and_drops_nothing) {
    EXPECT_THAT(ordered({"1.2.3.4:7", "5.6.7.8:7", "1.2.3.4:8"}, {"10.1.0.5:9"}),
                ElementsAre("1.2.3.4:7", "5.6.7.8:7", "1.2.3.4:8"));
    EXPECT_THAT(ordered({"127.0.0.1:7", "1.2.3.4:7"}, {}), ElementsAre("1.2.3.4:7", "127.0.0.1:7"));
    EXPECT_THAT(ordered({}, {"10.1.0.5:9"}), IsEmpty());
}

}  // namespace
}  // namespace nexar

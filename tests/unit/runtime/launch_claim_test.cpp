#include "runtime/launch_claim.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nexar {
namespace {

using testing::HasSubstr;

TEST(SeedHostTest, is_a_name_or_an_address_with_or_without_a_port) {
    struct Case {
        const char* text;
        const char* host;
        std::optional<std::uint16_t> port;
    };
    for (const Case& expected : std::vector<Case>{
             {"node1", "node1", {}},
             {"node1.cluster:7401", "node1.cluster", 7401},
             {"10.0.0.1:1", "10.0.0.1", 1},
             {"fd00::1", "fd00::1", {}},
             {"[fd00::1]", "fd00::1", {}},
             {"[fe80::1%eth0]:65535", "fe80::1%eth0", 65535},
         }) {
        const auto place = parse_seed_host("NEXAR_SEED_HOST", expected.text);
        ASSERT_TRUE(place) << expected.text << ": " << place.error().what();
        EXPECT_EQ(place->host, expected.host);
        EXPECT_EQ(place->port, expected.port);
    }
    for (const std::string text : {"", ":7400", "a:", "a:0", "a:65536", "a:b", "[::1", "[::1]7400",
                                   "[::1]:", "[]:1", "a b", "a\n", "a/b"}) {
        const auto place = parse_seed_host("NEXAR_SEED_HOST", text);
        ASSERT_FALSE(place) << text;
        EXPECT_EQ(place.error().code(), Errc::bad_config);
        EXPECT_THAT(place.error().cause(), HasSubstr("NEXAR_SEED_HOST=")) << text;
    }
}

TEST(LaunchVariablesTest, the_first_of_two_equal_names_wins_as_in_getenv) {
    const std::vector<NamedValue> environment = {{"RANK", "1"}, {"RANK", "2"}};
    LaunchVariables variables(environment);
    EXPECT_EQ(variables.number("RANK", 0, 9).value(), 1U);
}

TEST(LaunchVariablesTest, the_join_string_is_never_shown) {
    const std::vector<NamedValue> environment = {{"NEXAR_JOIN", "hunter2"}, {"NEXAR_RANK", "1"}};
    LaunchVariables variables(environment);
    (void)variables.find("NEXAR_JOIN");
    (void)variables.find("NEXAR_RANK");
    (void)variables.find("NEXAR_RANK");
    EXPECT_EQ(variables.seen_text(), "NEXAR_JOIN, NEXAR_RANK=1");
}

}  // namespace
}  // namespace nexar

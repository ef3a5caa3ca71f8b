#include "run/hosts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace nexar::run {
namespace {

using testing::HasSubstr;

std::string shares(std::string_view hosts, std::optional<std::uint32_t> ranks) {
    const auto result = share_ranks(hosts, ranks);
    if (!result) {
        EXPECT_EQ(result.error().code(), Errc::invalid_argument);
        return result.error().cause();
    }
    std::string text;
    for (const HostShare& share : *result) {
        text += share.host + "=" + std::to_string(share.first_rank) + "+" +
                std::to_string(share.count) + " ";
    }
    return text;
}

TEST(HostsTest, all_ranks_run_on_this_machine_when_no_host_is_given) {
    EXPECT_EQ(shares("", 4), "localhost=0+4 ");
    EXPECT_TRUE(share_ranks("", 4)->front().is_local());
    EXPECT_FALSE(share_ranks("node1", 4)->front().is_local());
}

TEST(HostsTest, shares_are_equal_or_follow_the_slots) {
    EXPECT_EQ(shares("a,b", 4), "a=0+2 b=2+2 ");
    EXPECT_EQ(shares("a,b,c", 5), "a=0+2 b=2+2 c=4+1 ");
    EXPECT_EQ(shares("a,b,c", 2), "a=0+1 b=1+1 ");
    EXPECT_EQ(shares("a:2,b:3", {}), "a=0+2 b=2+3 ");
    EXPECT_EQ(shares("a:2,b:3", 3), "a=0+2 b=2+1 ");
    EXPECT_EQ(shares("a:2,b:3", 2), "a=0+2 ");
    EXPECT_EQ(shares("me@a.example:2,[fd00::1]:1,fd00::2:9", {}),
              "--host: give a number of ranks "
              "to all hosts (a:2,b:2), or to "
              "none");
    EXPECT_EQ(shares("me@a.example:2,[fd00::1]:1", {}), "me@a.example=0+2 fd00::1=2+1 ");
    EXPECT_EQ(shares("fd00::2", 1), "fd00::2=0+1 ");
}

TEST(HostsTest, errors_explain_what_is_wrong) {
    for (const auto& [hosts, why] : std::vector<std::pair<std::string, std::string>>{
             {"a,,b", "is not a valid host name"},
             {"-oProxyCommand=x", "is not a valid host name"},
             {"a b", "is not a valid host name"},
             {"a;reboot", "is not a valid host name"},
             {"$(reboot)", "is not a valid host name"},
             {"[::1", "is not a valid host name"},
             {"[::1]x", "is not a valid host name"},
             {"a:0", "whole number from 1"},
             {"a:", "whole number from 1"},
             {"a:x", "whole number from 1"},
             {"a,a", "twice"},
             {"a:2,b", "to all hosts"},
             {"a:1,b:1", "-n 3 exceeds the 2 ranks"},
             {"a:16384,b:1", "exceed the limit of 16384"},
         }) {
        EXPECT_THAT(shares(hosts, 3), HasSubstr(why)) << hosts;
    }
    EXPECT_THAT(shares("a", {}), HasSubstr("number of ranks is missing"));
    EXPECT_THAT(shares("", 0), HasSubstr("from 1 to 16384"));
    EXPECT_THAT(shares("", 16385), HasSubstr("from 1 to 16384"));
}

}  // namespace
}  // namespace nexar::run

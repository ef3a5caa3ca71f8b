#include "runtime/node_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace nexar {
namespace {

using testing::HasSubstr;

TEST(NodeListTest, returns_the_first_host_and_the_number_of_hosts) {
    struct Case {
        const char* text;
        const char* first;
        std::uint32_t count;
    };
    for (const Case& expected : std::vector<Case>{
             {"node1", "node1", 1},
             {"node[001-004,7],gpu3", "node001", 6},
             {"gpu3,node[001-004]", "gpu3", 5},
             {"gnode[10,20,25,37]", "gnode10", 4},
             {"nid[001096]", "nid001096", 1},
             {"rack[0-1]node[08-11].example.org", "rack0node08.example.org", 8},
             {"a-b_c.d", "a-b_c.d", 1},
             {"[7-9]", "7", 3},
             {"n[0-1048575]", "n0", 1048576},
         }) {
        const auto list = parse_node_list(expected.text);
        ASSERT_TRUE(list) << expected.text << ": " << list.error().what();
        EXPECT_EQ(list->first, expected.first);
        EXPECT_EQ(list->count, expected.count) << expected.text;
    }
}

TEST(NodeListTest, error_says_what_is_wrong_with_a_list) {
    const std::string long_name(254, 'a');
    for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
             {"", "a host without a name"},
             {"a,,b", "a host without a name"},
             {"a,", "a host without a name"},
             {"n[1-3", "a bracket that is not closed"},
             {"n[1-3,", "brackets must contain numbers and ranges"},
             {"n[]", "brackets must contain numbers and ranges"},
             {"n[1-]", "brackets must contain numbers and ranges"},
             {"n[-3]", "brackets must contain numbers and ranges"},
             {"n[a-b]", "brackets must contain numbers and ranges"},
             {"n[4-3]", "a range that runs backwards"},
             {"n[1234567890123456789]", "a number has too many digits"},
             {"n]", "a character that is not allowed in a host name"},
             {"n 1", "a character that is not allowed in a host name"},
             {"n\n", "a character that is not allowed in a host name"},
             {"n[0-1048576]", "more than 1048576 hosts"},
             {"n[0-1023]m[0-1023],o", "more than 1048576 hosts"},
             {"n[0-1023]m[0-1024]", "more than 1048576 hosts"},
             {"n[0-999999]m[0-999999]o[0-999999]p[0-999999]", "more than 1048576 hosts"},
             {long_name, "more than 253 bytes"},
             {std::string((std::size_t{1} << 16) + 1, 'a'), "longer than 64 KiB"},
         }) {
        const auto list = parse_node_list(text);
        ASSERT_FALSE(list) << text;
        EXPECT_EQ(list.error().code(), Errc::malformed);
        EXPECT_THAT(list.error().cause(), HasSubstr(why)) << text;
    }
}

TEST(NodeListTest, tasks_per_node_are_looked_up_by_node_index) {
    EXPECT_EQ(tasks_on_node("4", 0).value(), 4U);
    EXPECT_EQ(tasks_on_node("2(x3),1", 0).value(), 2U);
    EXPECT_EQ(tasks_on_node("2(x3),1", 2).value(), 2U);
    EXPECT_EQ(tasks_on_node("2(x3),1", 3).value(), 1U);
    EXPECT_EQ(tasks_on_node("1,8(x1000),3", 1000).value(), 8U);
}

TEST(NodeListTest, error_says_what_is_wrong_with_tasks_per_node) {
    for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
             {"", "it lacks a number"},
             {"2(x)", "it lacks a number"},
             {"2,", "it lacks a number"},
             {"2(3)", "must look like 2(x3)"},
             {"2(x3", "not closed"},
             {"2x", "an unexpected character"},
             {"12345678", "a number has too many digits"},
             {"2(x3)", "no entry for node 3"},
         }) {
        const auto tasks = tasks_on_node(text, 3);
        ASSERT_FALSE(tasks) << text;
        EXPECT_EQ(tasks.error().code(), Errc::malformed);
        EXPECT_THAT(tasks.error().cause(), HasSubstr(why)) << text;
    }
}

}  // namespace
}  // namespace nexar

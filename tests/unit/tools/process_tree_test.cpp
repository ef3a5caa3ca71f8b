#include "run/process_tree.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "support/child_process.hpp"

namespace nexar::run {
namespace {

TEST(ProcessTreeTest, finds_the_parent_after_any_process_name) {
    EXPECT_EQ(parent_in_stat("12 (sh) S 7 12 12 0 -1"), 7);
    EXPECT_EQ(parent_in_stat("12 (a) S 99 (b) R 8 1"), 8);
    EXPECT_EQ(parent_in_stat("12 () ) Z 8"), 8);
    for (const char* text : {"", "12", "12 (sh)", "12 (sh) S", "12 (sh) S ", "12 (sh) S x"}) {
        EXPECT_EQ(parent_in_stat(text), -1) << text;
    }
}

TEST(ProcessTreeTest, lists_only_the_children_of_this_process) {
    EXPECT_TRUE(children().empty());
    const testing::ChildProcess child([](testing::Channel& channel) {
        // A grandchild of this process; ends together with its parent.
        const testing::ChildProcess grandchild(
            [](testing::Channel& own) { (void)own.hear(std::chrono::seconds(60)); });
        channel.say("ready");
        (void)channel.hear(std::chrono::seconds(60));
    });
    ASSERT_EQ(child.channel().hear(std::chrono::seconds(60)), "ready");
    EXPECT_EQ(children(), std::vector<pid_t>{child.id()});
}

}  // namespace
}  // namespace nexar::run

#include "runtime/seed/refusal_log.hpp"

#include <gtest/gtest.h>

namespace nexar::runtime {
namespace {

using std::chrono::seconds;

TEST(RefusalLogTest, logs_a_retrying_joiner_once_and_then_once_a_minute) {
    RefusalLog log;
    TimePoint now{};
    int lines = 0;
    std::string last;
    for (int i = 0; i < 301; ++i) {
        if (const auto line = log.note(now, "10.0.0.7", "the cluster is full")) {
            ++lines;
            last = *line;
        }
        now += std::chrono::milliseconds(200);
    }
    EXPECT_EQ(lines, 2) << "at the beginning and after a minute";
    EXPECT_EQ(last,
              "10.0.0.7 was rejected: the cluster is full (299 refusals since the last such line, "
              "60 s ago)");
}

TEST(RefusalLogTest, logs_each_host_and_each_reason) {
    RefusalLog log;
    const TimePoint now{};
    EXPECT_EQ(log.note(now, "a", "x"), "a was rejected: x");
    EXPECT_EQ(log.note(now, "b", "x"), "b was rejected: x");
    EXPECT_EQ(log.note(now, "a", "y"), "a was rejected: y");
    EXPECT_FALSE(log.note(now, "a", "x"));
}

TEST(RefusalLogTest, counts_only_refusals_that_were_not_logged) {
    RefusalLog log;
    TimePoint now{};
    EXPECT_TRUE(log.note(now, "a", "x"));
    now += seconds(90);
    EXPECT_EQ(log.note(now, "a", "x"), "a was rejected: x");
    EXPECT_FALSE(log.note(now, "a", "x"));
    now += seconds(61);
    EXPECT_EQ(log.note(now, "a", "x"),
              "a was rejected: x (1 refusal since the last such line, 61 s ago)");
}

TEST(RefusalLogTest, remembers_a_bounded_number_of_refusals_and_forgets_the_oldest) {
    RefusalLog log;
    TimePoint now{};
    for (std::size_t i = 0; i <= RefusalLog::kMostKept; ++i) {
        EXPECT_TRUE(log.note(now, std::to_string(i), "x"));
        now += std::chrono::milliseconds(1);
    }
    EXPECT_TRUE(log.note(now, "0", "x")) << "forgotten";
    EXPECT_FALSE(log.note(now, std::to_string(RefusalLog::kMostKept), "x")) << "remembered";
}

}  // namespace
}  // namespace nexar::runtime

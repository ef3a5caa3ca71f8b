#include "base/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "log_capture.hpp"

namespace nexar {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class Log : public testing::Test {
protected:
    Log() {
        set_log_level(LogLevel::debug);
        configure_log({.lines_per_second = 0});
        set_log_clock(&clock_);
    }
    ~Log() override {
        set_log_sink({});
        set_log_clock(nullptr);
        configure_log({});
    }

    // Tests share call sites: each starts an hour later, with all buckets full.
    static TimePoint next_start() {
        static TimePoint start{};
        return start += 1h;
    }

    ManualClock clock_{next_start()};
};

/// One call site for the tests of the rate limit.
void tick(int i) {
    NEXAR_LOG_WARNING("tick {}", i);
}

TEST_F(Log, record_has_level_text_and_location) {
    const LogCapture log;
    NEXAR_LOG_INFO("peer {} is late by {} ms", 3, 1.5);
    const int line = __LINE__ - 1;
    ASSERT_THAT(log.lines(), SizeIs(1));
    EXPECT_EQ(log.lines()[0].level, LogLevel::info);
    EXPECT_EQ(log.lines()[0].text, "peer 3 is late by 1.5 ms");
    EXPECT_EQ(log.lines()[0].file, "log_test.cpp");
    EXPECT_EQ(log.lines()[0].line, line);
    EXPECT_EQ(log.lines()[0].suppressed, 0U);
}

TEST_F(Log, writes_lines_at_or_above_the_threshold) {
    const LogCapture log;
    const auto levels_at = [&log](LogLevel threshold) {
        set_log_level(threshold);
        const std::size_t before = log.lines().size();
        NEXAR_LOG_DEBUG("x");
        NEXAR_LOG_INFO("x");
        NEXAR_LOG_WARNING("x");
        NEXAR_LOG_ERROR("x");
        return log.lines().size() - before;
    };
    EXPECT_EQ(levels_at(LogLevel::debug), 4U);
    EXPECT_EQ(levels_at(LogLevel::info), 3U);
    EXPECT_EQ(levels_at(LogLevel::warning), 2U);
    EXPECT_EQ(levels_at(LogLevel::error), 1U);
    EXPECT_EQ(levels_at(LogLevel::off), 0U);
}

TEST_F(Log, evaluates_arguments_only_for_lines_that_are_written) {
    configure_log({.lines_per_second = 1});
    const LogCapture log;
    int evaluated = 0;
    const auto say = [&evaluated] { NEXAR_LOG_WARNING("{}", ++evaluated); };
    set_log_level(LogLevel::error);
    say();
    EXPECT_EQ(evaluated, 0);
    set_log_level(LogLevel::warning);
    say();
    EXPECT_EQ(evaluated, 1);
    say();  // suppressed
    EXPECT_EQ(evaluated, 1);
}

TEST_F(Log, arguments_may_have_the_names_of_levels) {
    const LogCapture log;
    const std::string error = "boom";
    const int warning = 7;
    NEXAR_LOG_ERROR("{} {}", error, warning);
    ASSERT_THAT(log.lines(), SizeIs(1));
    EXPECT_EQ(log.lines()[0].text, "boom 7");
}

TEST_F(Log, allows_a_burst_of_one_second) {
    configure_log({.lines_per_second = 7});
    const LogCapture log;
    for (int i = 0; i < 100; ++i) tick(i);
    ASSERT_THAT(log.lines(), SizeIs(7));
    EXPECT_EQ(log.lines().back().text, "tick 6");
}

TEST_F(Log, the_next_line_says_how_many_were_suppressed) {
    configure_log({.lines_per_second = 2});
    const std::uint64_t before = log_losses().suppressed;
    const LogCapture log;
    for (int i = 0; i < 10; ++i) tick(i);
    clock_.advance(499ms);
    tick(10);
    EXPECT_THAT(log.lines(), SizeIs(2));
    clock_.advance(1ms);
    tick(11);
    ASSERT_THAT(log.lines(), SizeIs(3));
    EXPECT_EQ(log.lines()[2].text, "tick 11");
    EXPECT_EQ(log.lines()[2].suppressed, 9U);
    clock_.advance(500ms);
    tick(12);
    ASSERT_THAT(log.lines(), SizeIs(4));
    EXPECT_EQ(log.lines()[3].suppressed, 0U);
    EXPECT_EQ(log_losses().suppressed - before, 9U);
}

TEST_F(Log, limits_the_rate_over_time_and_the_burst_to_one_second) {
    configure_log({.lines_per_second = 10});
    const LogCapture log;
    for (int i = 0; i < 5'000; ++i) {  // 5 s
        tick(i);
        clock_.advance(1ms);
    }
    EXPECT_THAT(log.lines(), SizeIs(10 + 49));
    clock_.advance(1min);
    const std::size_t before = log.lines().size();
    for (int i = 0; i < 100; ++i) tick(i);
    EXPECT_EQ(log.lines().size() - before, 10U);
}

TEST_F(Log, limits_each_call_site_separately) {
    configure_log({.lines_per_second = 1});
    const LogCapture log;
    for (int i = 0; i < 3; ++i) {
        NEXAR_LOG_WARNING("one");
        NEXAR_LOG_WARNING("two");
    }
    EXPECT_THAT(log.lines(), SizeIs(2));
}

TEST_F(Log, without_a_limit_drops_nothing) {
    const LogCapture log;
    for (int i = 0; i < 10'000; ++i) tick(i);
    EXPECT_THAT(log.lines(), SizeIs(10'000));
}

TEST_F(Log, continues_after_the_clock_is_replaced_by_an_earlier_one) {
    configure_log({.lines_per_second = 1});
    const LogCapture log;
    const auto say = [] { NEXAR_LOG_WARNING("x"); };
    say();
    const ManualClock earlier{TimePoint(1s)};
    set_log_clock(&earlier);
    say();
    EXPECT_THAT(log.lines(), SizeIs(2));
    set_log_clock(nullptr);
    say();
    EXPECT_THAT(log.lines(), SizeIs(3));
}

TEST_F(Log, a_line_cannot_be_forged) {
    const LogCapture log;
    NEXAR_LOG_INFO("hello {}", "\x1b[2J\nnexar error the house is on fire");
    ASSERT_THAT(log.lines(), SizeIs(1));
    EXPECT_EQ(log.lines()[0].text, "hello \\x1b[2J\\nnexar error the house is on fire");
}

TEST_F(Log, bounds_the_length_of_a_line) {
    const LogCapture log;
    NEXAR_LOG_INFO("{}", std::string(1024, 'x'));
    NEXAR_LOG_INFO("{}", std::string(1025, 'x'));
    NEXAR_LOG_INFO("{}", std::string(10'000'000, 'x'));
    NEXAR_LOG_INFO("{}", std::string(1024, '\n'));
    ASSERT_THAT(log.lines(), SizeIs(4));
    EXPECT_EQ(log.lines()[0].text, std::string(1024, 'x'));
    EXPECT_EQ(log.lines()[1].text, std::string(1021, 'x') + "...");
    EXPECT_EQ(log.lines()[2].text, log.lines()[1].text);
    EXPECT_EQ(log.lines()[3].text.size(), 1023U);
    EXPECT_TRUE(log.lines()[3].text.ends_with("\\n..."));
}

TEST_F(Log, preserves_errno) {
    testing::internal::CaptureStderr();
    errno = ENOENT;
    NEXAR_LOG_ERROR("x");
    EXPECT_EQ(errno, ENOENT);
    testing::internal::GetCapturedStderr();
}

TEST_F(Log, goes_to_standard_error_when_there_is_no_sink) {
    testing::internal::CaptureStderr();
    configure_log({.lines_per_second = 1});
    const auto say = [](int i) { NEXAR_LOG_WARNING("line {}", i); };
    say(1);
    say(2);
    say(3);
    clock_.advance(1s);
    say(4);
    NEXAR_LOG_ERROR("{}", std::string(5000, 'x'));
    const std::string written = testing::internal::GetCapturedStderr();
    EXPECT_EQ(written,
              "nexar warning line 1\n"
              "nexar warning line 4 (2 more suppressed)\n"
              "nexar error " +
                  std::string(1021, 'x') + "...\n");
}

TEST_F(Log, an_empty_sink_restores_standard_error) {
    testing::internal::CaptureStderr();
    {
        const LogCapture log;
        NEXAR_LOG_ERROR("taken");
    }
    NEXAR_LOG_ERROR("written");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "nexar error written\n");
}

TEST_F(Log, survives_a_sink_that_throws) {
    int calls = 0;
    const LogLosses before = log_losses();
    set_log_sink([&calls](const LogRecord&) {
        ++calls;
        throw std::runtime_error("full");
    });
    tick(1);
    tick(2);
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(log_losses().failed - before.failed, 2U);
}

TEST_F(Log, drops_and_counts_lines_logged_by_a_sink) {
    int calls = 0;
    const LogLosses before = log_losses();
    set_log_sink([&calls](const LogRecord&) {
        ++calls;
        NEXAR_LOG_ERROR("from inside");
    });
    tick(1);
    tick(2);
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(log_losses().reentrant - before.reentrant, 2U);
}

TEST_F(Log, a_sink_may_replace_itself) {
    std::vector<std::string> taken;
    set_log_sink([&taken](const LogRecord& record) {
        set_log_sink([&taken](const LogRecord& later) {
            taken.push_back("second " + std::string(later.text));
        });
        taken.push_back("first " + std::string(record.text));
    });
    tick(1);
    tick(2);
    EXPECT_THAT(taken, ElementsAre("first tick 1", "second tick 2"));
}

/// Logs when it is destroyed, as a sink's own members may.
struct LastWords {
    std::shared_ptr<int> spoken;
    ~LastWords() {
        ++*spoken;
        NEXAR_LOG_ERROR("last words");
    }
};

TEST_F(Log, a_replaced_sink_is_destroyed_without_the_lock) {
    const auto spoken = std::make_shared<int>(0);
    const auto sink = [spoken] {
        return [words = std::make_shared<LastWords>(spoken)](const LogRecord&) {};
    };
    set_log_sink(sink());
    const LogCapture log;
    EXPECT_EQ(*spoken, 1) << "the old sink is gone when set_log_sink returns";
    ASSERT_THAT(log.lines(), SizeIs(1)) << "and the new one is in place";
    EXPECT_EQ(log.lines()[0].text, "last words");
}

TEST_F(Log, a_level_set_in_code_overrides_the_setting) {
    set_log_level(LogLevel::error);
    configure_log({.level = LogLevel::debug});
    EXPECT_EQ(log_level(), LogLevel::error);
}

TEST_F(Log, a_format_error_at_run_time_is_counted) {
    const LogCapture log;
    const LogLosses before = log_losses();
    NEXAR_LOG_ERROR("{:{}}", 1, -1);
    EXPECT_THAT(log.lines(), IsEmpty());
    EXPECT_EQ(log_losses().failed - before.failed, 1U);
}

TEST(LogLevel, has_a_name) {
    EXPECT_EQ(name(LogLevel::warning), "warning");
    EXPECT_EQ(name(static_cast<LogLevel>(99)), "unknown");
}

TEST(LogLevelDeathTest, follows_the_setting_until_code_sets_it) {
    // In a new process, because setting the level in code has a permanent effect.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            configure_log({.level = LogLevel::info});
            const bool followed = log_level() == LogLevel::info;
            set_log_level(LogLevel::off);
            configure_log({.level = LogLevel::debug});
            std::exit(followed && log_level() == LogLevel::off ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace nexar

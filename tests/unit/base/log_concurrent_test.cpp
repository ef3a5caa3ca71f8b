#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "log_capture.hpp"

namespace nexar {
namespace {

constexpr int kLogThreads = 4;
constexpr int kLines = 200;

class LogConcurrent : public testing::Test {
protected:
    LogConcurrent() {
        set_log_level(LogLevel::debug);
        configure_log({.lines_per_second = 0});
    }
    ~LogConcurrent() override {
        set_log_sink({});
        set_log_clock(nullptr);
        configure_log({});
    }
};

/// Runs `work(thread)` on kLogThreads threads that start together.
template <class Work>
void on_all_threads(Work work) {
    std::barrier start(kLogThreads);
    std::vector<std::jthread> threads;
    for (int t = 0; t < kLogThreads; ++t) {
        threads.emplace_back([&start, &work, t] {
            start.arrive_and_wait();
            work(t);
        });
    }
}

TEST_F(LogConcurrent, every_line_reaches_the_sink_once_and_in_order_of_its_thread) {
    const LogCapture log;
    on_all_threads([](int t) {
        for (int i = 0; i < kLines; ++i) NEXAR_LOG_INFO("{} {}", t, i);
    });
    ASSERT_EQ(log.lines().size(), std::size_t{kLogThreads} * kLines);
    std::map<int, int> next;
    for (const LogCapture::Line& line : log.lines()) {
        std::istringstream words(line.text);
        int t = -1;
        int i = -1;
        words >> t >> i;
        ASSERT_EQ(next[t]++, i) << line.text;
    }
}

TEST_F(LogConcurrent, a_sink_runs_in_one_thread_at_a_time) {
    std::atomic<int> inside = 0;
    std::atomic<int> overlaps = 0;
    set_log_sink([&](const LogRecord&) {
        if (inside.fetch_add(1) != 0) ++overlaps;
        std::this_thread::yield();
        inside.fetch_sub(1);
    });
    on_all_threads([](int t) {
        for (int i = 0; i < kLines; ++i) NEXAR_LOG_INFO("{} {}", t, i);
    });
    EXPECT_EQ(overlaps, 0);
}

TEST_F(LogConcurrent, a_replaced_sink_is_not_called_again) {
    std::atomic<int> running = kLogThreads - 1;
    std::atomic<int> late = 0;
    std::atomic<int> taken = 0;
    set_log_sink([&taken](const LogRecord&) { ++taken; });
    on_all_threads([&](int t) {
        if (t != 0) {
            for (int i = 0; i < kLines; ++i) NEXAR_LOG_INFO("{} {}", t, i);
            running.fetch_sub(1);
            return;
        }
        while (running.load() != 0) {
            auto alive = std::make_unique<std::atomic<bool>>(true);
            set_log_sink([flag = alive.get(), &late, &taken](const LogRecord&) {
                if (!flag->load()) ++late;
                ++taken;
            });
            set_log_sink([&taken](const LogRecord&) { ++taken; });
            alive->store(false);
            alive.reset();  // a sink that still ran would touch freed memory
        }
    });
    EXPECT_EQ(late, 0);
    EXPECT_EQ(taken, (kLogThreads - 1) * kLines) << "a line went to no sink or to two";
}

TEST_F(LogConcurrent, lines_on_standard_error_do_not_interleave) {
    testing::internal::CaptureStderr();
    on_all_threads([](int t) {
        const std::string body(300, static_cast<char>('a' + t));
        for (int i = 0; i < kLines; ++i) NEXAR_LOG_INFO("{}", body);
    });
    std::istringstream written(testing::internal::GetCapturedStderr());
    std::array<int, kLogThreads> seen{};
    for (std::string line; std::getline(written, line);) {
        ASSERT_EQ(line.size(), 11U + 300U) << line;
        const char letter = line[11];
        ASSERT_EQ(line, "nexar info " + std::string(300, letter));
        ++seen.at(static_cast<std::size_t>(letter - 'a'));
    }
    EXPECT_THAT(seen, testing::Each(kLines));
}

TEST_F(LogConcurrent, a_shared_call_site_writes_exactly_its_burst) {
    // Repetitions of the test share the call site, so each must start with a full bucket.
    static ManualClock clock{TimePoint(std::chrono::hours(1))};
    clock.advance(std::chrono::hours(1));
    set_log_clock(&clock);
    configure_log({.lines_per_second = 50});
    const std::uint64_t before = log_losses().suppressed;
    const auto say = [](int i) { NEXAR_LOG_INFO("{}", i); };
    const LogCapture log;
    on_all_threads([&say](int) {
        for (int i = 0; i < kLines; ++i) say(i);
    });
    EXPECT_EQ(log.lines().size(), 50U);
    const std::uint64_t suppressed = log_losses().suppressed - before;
    EXPECT_EQ(log.lines().size() + suppressed, std::size_t{kLogThreads} * kLines);
}

TEST_F(LogConcurrent, level_and_limit_may_change_at_any_time) {
    const LogCapture log;
    on_all_threads([](int t) {
        for (int i = 0; i < kLines; ++i) {
            if (t == 0) set_log_level(i % 2 == 0 ? LogLevel::off : LogLevel::debug);
            if (t == 1) configure_log({.lines_per_second = static_cast<std::uint32_t>(i % 3)});
            NEXAR_LOG_INFO("{} {}", t, i);
        }
    });
    EXPECT_LE(log.lines().size(), std::size_t{kLogThreads} * kLines);
}

}  // namespace
}  // namespace nexar

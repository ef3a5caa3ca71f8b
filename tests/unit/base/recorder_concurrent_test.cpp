#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <latch>
#include <map>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "base/recorder.hpp"

namespace nexar {
namespace {

// Every word of the event follows from `number` and `writer`, so a mixture of two events is
// detected.
RecordedEvent sealed(std::uint64_t writer, std::uint64_t number) {
    const std::uint64_t seal = SplitMix64(number * 64 + writer).next();
    return {.time = TimePoint(Duration(static_cast<std::int64_t>(seal >> 1))),
            .kind = EventKind::mark,
            .a = static_cast<std::uint16_t>(writer),
            .b = static_cast<std::uint32_t>(seal),
            .c = number,
            .d = seal};
}

TEST(RecorderConcurrent, never_shows_a_torn_event_while_the_rings_are_overwritten) {
    constexpr std::uint64_t kWriters = 2;
    constexpr int kSnapshots = 5000;
    // So short that most events are overwritten while the reader looks at them.
    Recorder recorder({.events_per_thread = 2});
    std::latch all_here(kWriters + 1);
    std::atomic<std::uint64_t> written{0};
    std::vector<std::jthread> writers;
    for (std::uint64_t w = 0; w < kWriters; ++w) {
        writers.emplace_back([&, w](const std::stop_token& stop) {
            std::uint64_t n = 0;
            while (n < 2) recorder.record(sealed(w, n++));
            all_here.arrive_and_wait();
            while (!stop.stop_requested()) recorder.record(sealed(w, n++));
            written.fetch_add(n);
        });
    }
    all_here.arrive_and_wait();
    for (int taken = 0; taken < kSnapshots; ++taken) {
        TimePoint last = TimePoint::min();
        for (const auto& recorded : recorder.snapshot().events) {
            const RecordedEvent& event = recorded.event;
            ASSERT_EQ(event, sealed(event.a, event.c));
            ASSERT_GE(event.time, last);
            last = event.time;
        }
    }
    writers.clear();
    const auto snapshot = recorder.snapshot();
    EXPECT_EQ(snapshot.events.size(), 2 * kWriters);
    EXPECT_EQ(snapshot.overwritten + snapshot.events.size(), written.load());
    EXPECT_EQ(snapshot.dropped, 0U);
}

TEST(RecorderConcurrent, shows_a_threads_events_without_a_gap) {
    Recorder recorder({.events_per_thread = 64});
    const std::jthread writer([&](const std::stop_token& stop) {
        for (std::uint64_t n = 0; !stop.stop_requested(); ++n) {
            recorder.record({.time = TimePoint(Duration(static_cast<std::int64_t>(n))), .c = n});
        }
    });
    for (int round = 0; round < 200;) {
        const auto snapshot = recorder.snapshot();
        if (snapshot.events.empty()) {
            std::this_thread::yield();
            continue;
        }
        ++round;
        std::uint64_t next = snapshot.overwritten;
        for (const auto& recorded : snapshot.events) ASSERT_EQ(recorded.event.c, next++);
    }
}

TEST(RecorderConcurrent, keeps_the_events_of_an_ended_thread_until_its_ring_is_reused) {
    (void)thread_index();
    Recorder recorder({.events_per_thread = 4});
    std::jthread([&] {
        for (std::uint64_t n = 0; n < 4; ++n) recorder.record(sealed(1, n));
    }).join();
    EXPECT_EQ(recorder.snapshot().events.size(), 4U);

    std::jthread([&] { recorder.record(sealed(2, 0)); }).join();
    std::map<unsigned, int> by_writer;
    std::map<unsigned, int> by_thread;
    for (const auto& recorded : recorder.snapshot().events) {
        ++by_writer[recorded.event.a];
        ++by_thread[recorded.thread];
    }
    EXPECT_EQ(by_writer, (std::map<unsigned, int>{{1, 3}, {2, 1}}));
    EXPECT_EQ(by_thread.size(), 1U);
    EXPECT_EQ(recorder.snapshot().overwritten, 1U);
}

TEST(RecorderConcurrent, merges_the_threads_by_time) {
    Recorder recorder({.events_per_thread = 64});
    constexpr int kThreads = 3;
    std::latch all_here(kThreads);
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&, t] {
                (void)thread_index();
                all_here.arrive_and_wait();
                for (int n = t; n < 30; n += kThreads) {
                    recorder.record(
                        {.time = TimePoint(Duration(n)), .c = static_cast<unsigned>(n)});
                }
            });
        }
    }
    const auto snapshot = recorder.snapshot();
    ASSERT_EQ(snapshot.events.size(), 30U);
    for (std::uint64_t n = 0; n < 30; ++n) {
        EXPECT_EQ(snapshot.events[n].event.c, n);
        EXPECT_EQ(snapshot.events[n].thread, snapshot.events[n % kThreads].thread);
    }
}

TEST(RecorderConcurrent, drops_and_counts_events_of_threads_beyond_the_limit) {
    const unsigned own = thread_index();
    Recorder recorder({.events_per_thread = 8, .threads = own + std::size_t{1}});
    recorder.record(sealed(0, 1));
    constexpr unsigned kThreads = 5;
    std::latch all_here(kThreads);
    std::atomic<unsigned> beyond{0};
    {
        std::vector<std::jthread> threads;
        for (unsigned t = 0; t < kThreads; ++t) {
            threads.emplace_back([&] {
                if (thread_index() > own) beyond.fetch_add(1);
                all_here.arrive_and_wait();
                recorder.record(sealed(1, 1));
            });
        }
    }
    // Only a thread that got a free number below ours has a ring.
    EXPECT_GE(beyond.load(), kThreads - own);
    const auto snapshot = recorder.snapshot();
    EXPECT_EQ(snapshot.dropped, beyond.load());
    EXPECT_EQ(snapshot.events.size(), 1 + kThreads - beyond.load());
}

}  // namespace
}  // namespace nexar

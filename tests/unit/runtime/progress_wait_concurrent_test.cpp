#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "runtime/progress.hpp"
#include "support/seed.hpp"
#include "unit/runtime/fake_node.hpp"
#include "unit/runtime/function_continuation.hpp"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kThreads = 8;

/// Counts turns, turns in which something was due, and looks.
class Watcher final : public Driven {
public:
    explicit Watcher(Progress& progress) : progress_(progress) { progress_.add(*this).value(); }
    Watcher(const Watcher&) = delete;
    Watcher& operator=(const Watcher&) = delete;
    ~Watcher() override { progress_.remove(*this); }

    int turns() const noexcept { return turns_.load(); }
    int served() const noexcept { return served_.load(); }
    int looks() const noexcept { return looks_.load(); }
    /// Demands a turn before the next look. The caller holds the lock.
    void touch(TimePoint due) noexcept {
        touched_ = true;
        due_ = due;
    }

    std::span<port::Carrier* const> carriers() const noexcept override { return {}; }
    bool turn(TimePoint now) noexcept override {
        touched_ = false;
        ++turns_;
        if (due_ > now) return false;
        due_ = TimePoint::max();
        ++served_;
        return false;
    }
    bool look(TimePoint now) noexcept override {
        ++looks_;
        EXPECT_LT(now, due_) << "it should have been a turn";
        EXPECT_FALSE(touched_) << "it should have been a turn";
        return false;
    }
    std::optional<TimePoint> next_deadline() const noexcept override { return due_; }

private:
    Progress& progress_;
    std::atomic<int> turns_{0};
    std::atomic<int> served_{0};
    std::atomic<int> looks_{0};
    bool touched_ = false;
    TimePoint due_ = TimePoint::max();
};

void await(const std::function<bool()>& done) {
    const TimePoint end = soon();
    while (!done()) {
        ASSERT_LT(SteadyClock{}.now(), end);
        std::this_thread::yield();
    }
}

// A thread that completes requested operations, sometimes at once and sometimes late, in one of the
// ways in which operations complete: by input that a driver reads, under a guard, or by a post.
class Completer {
public:
    Completer(Progress& progress, FakeNode& node, Random random)
        : progress_(progress), node_(node), thread_([this, random]() mutable { run(random); }) {}
    Completer(const Completer&) = delete;
    Completer& operator=(const Completer&) = delete;
    ~Completer() {
        {
            const std::scoped_lock lock(mutex_);
            ending_ = true;
        }
        changed_.notify_one();
    }

    /// `number` must be unique among the pending operations.
    void complete_soon(std::uint64_t number, Completion& completion) {
        node_.expect(number, completion);
        {
            const std::scoped_lock lock(mutex_);
            asked_.emplace_back(number, &completion);
        }
        changed_.notify_one();
    }

private:
    void run(Random& random) {
        for (;;) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return ending_ || !asked_.empty(); });
            if (asked_.empty()) return;
            const auto [number, completion] = asked_.front();
            asked_.pop_front();
            lock.unlock();
            // Complete sometimes before and sometimes after the other thread starts to wait.
            const TimePoint then = SteadyClock{}.now() + Duration(random.below(30'000));
            while (SteadyClock{}.now() < then) {
            }
            complete(number, *completion, random.below(3));
        }
    }

    void complete(std::uint64_t number, Completion& completion, std::uint64_t way) {
        if (way == 0) return node_.carrier().arrive(number);
        const auto finish = [&] {
            node_.forget_locked(number);
            progress_.complete(completion);
        };
        if (way == 1) {
            const Progress::Guard guard(progress_);
            return finish();
        }
        std::atomic<bool> ran{false};
        FunctionSubmission call([&] {
            finish();
            ran.store(true, std::memory_order_release);
        });
        progress_.post(call);
        while (!ran.load(std::memory_order_acquire)) std::this_thread::yield();
    }

    Progress& progress_;
    FakeNode& node_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::pair<std::uint64_t, Completion*>> asked_;
    bool ending_ = false;
    std::jthread thread_;
};

struct Setting {
    const char* name;
    Progress::Options options;
};
// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest expects
void PrintTo(const Setting& setting, std::ostream* out) {
    *out << setting.name;
}

class ProgressConcurrent : public ::testing::TestWithParam<Setting> {
protected:
    // Runs `body(thread, random)` in kThreads threads.
    template <class Body>
    void in_threads(const Body& body) {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < kThreads; ++i) {
            threads.emplace_back([&body, i, fork = random_.fork()]() mutable { body(i, fork); });
        }
    }

    Random random_{test_seed(31)};
    std::unique_ptr<Progress> progress_ = make_progress(GetParam().options);
    FakeNode node_{*progress_};
    Completer completer_{*progress_, node_, random_.fork()};
};

TEST_P(ProgressConcurrent, each_of_eight_threads_sees_its_own_operation_complete) {
    in_threads([&](std::uint64_t thread, Random& random) {
        for (int i = 0; i < 20; ++i) {
            // On the heap and freed at once, so that a sanitizer catches any later access.
            auto completion = std::make_unique<Completion>();
            completer_.complete_soon(thread, *completion);
            if (random.chance(0.2)) std::this_thread::yield();
            ASSERT_TRUE(progress_->wait(*completion, soon()));
            ASSERT_TRUE(completion->done());
        }
    });
}

TEST_P(ProgressConcurrent, a_thread_that_polls_done_may_destroy_the_completion_at_once) {
    in_threads([&](std::uint64_t thread, Random& random) {
        for (int i = 0; i < 4; ++i) {
            auto completion = std::make_unique<Completion>();
            completer_.complete_soon(thread, *completion);
            if (random.chance(0.3)) {
                ASSERT_TRUE(progress_->wait(*completion, soon()));
                continue;
            }
            const TimePoint patience = soon();
            while (!completion->done()) {
                // Without a background thread the callers must make progress themselves.
                static_cast<void>(progress_->wait(*completion, TimePoint{}));
                ASSERT_LT(SteadyClock{}.now(), patience);
            }
        }
    });
}

TEST_P(ProgressConcurrent, a_wait_with_a_deadline_reports_correctly_whether_it_completed) {
    std::atomic<int> expired{0};
    in_threads([&](std::uint64_t thread, Random& random) {
        for (int i = 0; i < 12; ++i) {
            auto completion = std::make_unique<Completion>();
            completer_.complete_soon(thread, *completion);
            const Duration patience = std::chrono::microseconds(random.below(60));
            if (!progress_->wait(*completion, SteadyClock{}.now() + patience)) {
                expired.fetch_add(1, std::memory_order_relaxed);
                ASSERT_TRUE(progress_->wait(*completion, soon()));
            }
            ASSERT_TRUE(completion->done());
        }
    });
    EXPECT_GT(expired.load(), 0);
}

TEST_P(ProgressConcurrent, wait_any_returns_each_completion_and_releases_the_others) {
    constexpr std::size_t kSet = 5;
    in_threads([&](std::uint64_t thread, Random&) {
        for (int i = 0; i < 4; ++i) {
            std::array<std::unique_ptr<Completion>, kSet> all;
            std::vector<Completion*> set;
            for (std::size_t k = 0; k < kSet; ++k) {
                all[k] = std::make_unique<Completion>();
                set.push_back(all[k].get());
                completer_.complete_soon(thread * kSet + k, *all[k]);
            }
            while (!set.empty()) {
                const auto found = progress_->wait_any(set, soon());
                ASSERT_TRUE(found);
                ASSERT_TRUE(set[*found]->done());
                for (auto& one : all) {
                    if (one.get() == set[*found]) one.reset();
                }
                set.erase(set.begin() + static_cast<std::ptrdiff_t>(*found));
            }
        }
    });
}

TEST_P(ProgressConcurrent, a_driver_that_is_done_hands_over_to_a_waiting_thread) {
    Completion first;
    Completion second;
    node_.expect(100, first);
    node_.expect(101, second);
    std::atomic<bool> first_returned{false};
    {
        const std::jthread one([&] {
            EXPECT_TRUE(progress_->wait(first, soon()));
            first_returned.store(true, std::memory_order_release);
        });
        const std::jthread other([&] { EXPECT_TRUE(progress_->wait(second, soon())); });
        node_.carrier().arrive(100);
        while (!first_returned.load(std::memory_order_acquire)) std::this_thread::yield();
        node_.carrier().arrive(101);
    }
    EXPECT_TRUE(second.done());
}

TEST_P(ProgressConcurrent, a_sleeping_driver_notices_an_earlier_deadline) {
    Completion far;
    node_.complete_at(soon() + 1h, far);
    Completion awaited;
    std::atomic<bool> returned{false};
    const std::jthread waiting([&] {
        EXPECT_TRUE(progress_->wait(awaited, soon()));
        returned.store(true, std::memory_order_release);
    });
    // The driver is asleep once it has taken no turn for a while.
    for (std::uint64_t turns = ~0ULL; turns != node_.turns();) {
        turns = node_.turns();
        const TimePoint later = SteadyClock{}.now() + 2ms;
        while (SteadyClock{}.now() < later) std::this_thread::yield();
    }
    const TimePoint due = SteadyClock{}.now() + 1ms;
    node_.complete_at(due, awaited);
    while (!returned.load(std::memory_order_acquire)) std::this_thread::yield();
    EXPECT_GE(SteadyClock{}.now(), due);
    const Progress::Guard guard(*progress_);
    node_.forget_timed_locked();
}

INSTANTIATE_TEST_SUITE_P(
    drives, ProgressConcurrent,
    ::testing::Values(Setting{.name = "background", .options = {}},
                      // Looks continuously, so waiters steal the baton from it all the time.
                      Setting{.name = "eager_background", .options = {.spin = 0us, .look = 10us}},
                      Setting{.name = "user_loop",
                              .options = {.drive = Progress::Drive::user_loop}}),
    [](const auto& tested) { return tested.param.name; });

TEST(progress_wait, a_spinning_thread_only_looks_until_something_is_due_or_the_lock_was_taken) {
    const auto progress = make_progress({.waiting = Waiting::spin});
    Watcher watcher(*progress);
    FakeNode node(*progress);
    Completion completion;
    std::thread waiter([&] { EXPECT_TRUE(progress->wait(completion, soon())); });
    await([&] { return watcher.looks() > 10; });
    for (int i = 0; i < 20; ++i) {
        const int turns = watcher.turns();
        const int served = watcher.served();
        const bool with_due = i % 2 == 0;
        {
            const Progress::Guard guard(*progress);
            watcher.touch(with_due ? SteadyClock{}.now() + 50us : TimePoint::max());
        }
        await([&] { return with_due ? watcher.served() > served : watcher.turns() > turns; });
        const int looks = watcher.looks();
        await([&] { return watcher.looks() > looks; });
    }
    node.complete_now(completion);
    waiter.join();
}

}  // namespace
}  // namespace nexar::runtime

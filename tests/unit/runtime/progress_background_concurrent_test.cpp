#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <nexar/error.hpp>
#include <string>
#include <thread>
#include <vector>

#include "runtime/progress.hpp"
#include "unit/runtime/fake_node.hpp"
#include "unit/runtime/function_continuation.hpp"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;

template <class Condition>
bool eventually(const Condition& condition) {
    const TimePoint patience = soon();
    while (!condition()) {
        if (SteadyClock{}.now() > patience) return false;
        std::this_thread::yield();
    }
    return true;
}

bool becomes_done(const Completion& completion) {
    return eventually([&] { return completion.done(); });
}

TEST(progress_background, drives_while_the_caller_computes) {
    const auto progress = make_progress();
    FakeNode node(*progress);
    Completion by_input;
    Completion by_time;
    node.expect(4, by_input);
    node.carrier().arrive(4);
    node.complete_at(SteadyClock{}.now() + 1ms, by_time);
    EXPECT_TRUE(becomes_done(by_input));
    EXPECT_TRUE(becomes_done(by_time));
}

TEST(progress_background, takes_over_from_a_caller_that_waited_and_now_computes) {
    const auto progress = make_progress();
    FakeNode node(*progress);
    for (std::uint64_t i = 0; i < 20; ++i) {
        Completion waited;
        Completion computed;
        node.expect(2 * i, waited);
        node.expect(2 * i + 1, computed);
        node.carrier().arrive(2 * i);
        ASSERT_TRUE(progress->wait(waited, soon()));
        node.carrier().arrive(2 * i + 1);
        ASSERT_TRUE(becomes_done(computed));
    }
}

TEST(progress_background, sleeps_while_there_is_nothing_to_do) {
    const auto progress = make_progress();
    FakeNode node(*progress);
    Completion completion;
    node.expect(1, completion);
    node.carrier().arrive(1);
    ASSERT_TRUE(progress->wait(completion, soon()));
    const auto idle = make_progress({.drive = Progress::Drive::user_loop});
    const std::uint64_t before = node.turns();
    Completion never;
    EXPECT_FALSE(idle->wait(never, SteadyClock{}.now() + 60ms));
    // It takes over once and spins for 20 us. Spinning for 60 ms would take tens of thousands of
    // turns.
    EXPECT_LT(node.turns() - before, 3000U);
}

TEST(progress_background, runs_continuations_in_a_named_thread_with_signals_blocked) {
    const auto progress = make_progress();
    FakeNode node(*progress);
    std::string name(16, '\0');
    bool all_blocked = true;
    Completion completion;
    Completion ran;
    FunctionContinuation call([&] {
        pthread_getname_np(pthread_self(), name.data(), name.size());
        sigset_t mask;
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM}) {
            all_blocked = all_blocked && sigismember(&mask, signal) == 1;
        }
        node.complete_now(ran);
    });
    ASSERT_TRUE(completion.then(call));
    node.complete_now(completion);
    ASSERT_TRUE(becomes_done(ran));
    EXPECT_EQ(std::string(name.c_str()), "nexar");
    EXPECT_TRUE(all_blocked);
    sigset_t mine;
    pthread_sigmask(SIG_BLOCK, nullptr, &mine);
    EXPECT_EQ(sigismember(&mine, SIGTERM), 0);
}

TEST(progress_background, a_blocking_continuation_does_not_delay_waiting_threads) {
    const auto progress = make_progress();
    FakeNode node(*progress);
    Completion trigger;
    Completion awaited;
    node.expect(8, awaited);
    std::atomic<bool> entered{false};
    std::atomic<bool> released{false};
    std::atomic<bool> left{false};
    FunctionContinuation call([&] {
        entered = true;
        EXPECT_TRUE(eventually([&] { return released.load(); }));
        left = true;
    });
    ASSERT_TRUE(trigger.then(call));
    node.complete_now(trigger);
    ASSERT_TRUE(eventually([&] { return entered.load(); }));
    node.carrier().arrive(8);
    EXPECT_TRUE(progress->wait(awaited, soon()));
    released = true;
    EXPECT_TRUE(eventually([&] { return left.load(); }));
}

TEST(progress_background, waits_inside_continuations_complete_while_other_threads_wait_too) {
    const auto progress = make_progress({.look = 20us});
    FakeNode node(*progress);
    std::atomic<int> inside{0};
    std::atomic<bool> overlapped{false};
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 25; ++i) {
                Completion outer;
                Completion inner;
                Completion ran;
                node.expect(3 * t, outer);
                node.expect(3 * t + 1, inner);
                FunctionContinuation call([&] {
                    if (inside.fetch_add(1) != 0) overlapped = true;
                    node.carrier().arrive(3 * t + 1);
                    EXPECT_TRUE(progress->wait(inner, soon()));
                    inside.fetch_sub(1);
                    node.complete_now(ran);
                });
                ASSERT_TRUE(outer.then(call));
                node.carrier().arrive(3 * t);
                ASSERT_TRUE(progress->wait(ran, soon()));
            }
        });
    }
    threads.clear();
    EXPECT_FALSE(overlapped.load());
}

TEST(progress_background, waiting_threads_drive_themselves_after_stop) {
    const auto progress = make_progress();
    FakeNode node(*progress);
    std::array<Completion, 3> awaited;
    for (std::uint64_t i = 0; i < 3; ++i) node.expect(i, awaited[i]);
    std::vector<std::jthread> threads;
    for (Completion& one : awaited) {
        threads.emplace_back([&] { EXPECT_TRUE(progress->wait(one, soon())); });
    }
    progress->stop();
    for (std::uint64_t i = 0; i < 3; ++i) node.carrier().arrive(2 - i);
    threads.clear();
    Completion later;
    node.expect(9, later);
    node.carrier().arrive(9);
    EXPECT_TRUE(progress->wait(later, soon()));
}

TEST(progress_background, can_be_created_and_stopped_repeatedly) {
    for (int i = 0; i < 20; ++i) {
        const auto progress = make_progress();
        FakeNode node(*progress);
        if (i % 2 == 0) progress->stop();
    }
}

TEST(progress_background, cannot_be_stopped_by_a_continuation_that_it_runs) {
    const auto progress = make_progress();
    FakeNode node(*progress);
    Completion trigger;
    Completion ran;
    Errc code{};
    FunctionContinuation call([&] {
        try {
            progress->stop();
        } catch (const Error& error) {
            code = error.code();
        }
        node.complete_now(ran);
    });
    ASSERT_TRUE(trigger.then(call));
    node.complete_now(trigger);
    ASSERT_TRUE(becomes_done(ran));
    EXPECT_EQ(code, Errc::reentrant_call);
}

bool forked(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.code() == Errc::forked;
    }
    return false;
}

TEST(progress_fork, a_forked_child_gets_an_error_and_its_exit_does_not_disturb_the_parent) {
    auto progress = make_progress();
    auto node = std::make_unique<FakeNode>(*progress);
    Completion completion;
    node->expect(6, completion);
    const pid_t child = ::fork();
    if (child == 0) {
        FunctionSubmission posted([] {});
        const bool refused = forked([&] { const Progress::Guard guard(*progress); }) &&
                             forked([&] { static_cast<void>(progress->wait(completion)); }) &&
                             forked([&] { progress->post(posted); }) &&
                             forked([&] { progress->poll(); });
        node.reset();  // removes itself
        progress.reset();
        ::_exit(refused ? 42 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 42);
    // The driver must sleep and be woken by the descriptor that the child had inherited.
    const std::uint64_t turns = node->turns();
    const std::jthread waiting([&] { EXPECT_TRUE(progress->wait(completion, soon())); });
    EXPECT_TRUE(eventually([&] { return node->turns() > turns + 2; }));
    node->carrier().arrive(6);
}

TEST(progress_user_loop, runs_continuations_only_in_its_own_thread_while_others_wait) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    std::atomic<bool> ending{false};
    std::atomic<int> ran{0};
    std::atomic<int> strangers{0};
    std::jthread loop([&] {
        while (!ending) {
            const auto deadline = progress->next_deadline();
            timespec left{.tv_sec = 60, .tv_nsec = 0};
            if (deadline) left = {.tv_sec = 0, .tv_nsec = 100'000};
            pollfd entry{.fd = progress->descriptor(), .events = POLLIN, .revents = 0};
            ::ppoll(&entry, 1, &left, nullptr);
            progress->poll();
        }
    });
    const auto loop_id = loop.get_id();
    constexpr int kEach = 40;
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < kEach; ++i) {
                Completion waited;
                Completion followed;
                Completion over;
                node.expect(2 * t, waited);
                node.expect(2 * t + 1, followed);
                FunctionContinuation call([&] {
                    if (std::this_thread::get_id() != loop_id) strangers.fetch_add(1);
                    ran.fetch_add(1);
                    node.complete_now(over);
                });
                ASSERT_TRUE(followed.then(call));
                node.carrier().arrive(2 * t + 1);
                node.carrier().arrive(2 * t);
                ASSERT_TRUE(progress->wait(waited, soon()));
                ASSERT_TRUE(progress->wait(over, soon()));
            }
        });
    }
    threads.clear();
    EXPECT_EQ(ran.load(), 3 * kEach);
    EXPECT_EQ(strangers.load(), 0);
    ending = true;
    Completion last;
    node.complete_at(SteadyClock{}.now(), last);  // wakes the loop
    loop.join();
    static_cast<void>(progress->wait(last, soon()));
}

}  // namespace
}  // namespace nexar::runtime

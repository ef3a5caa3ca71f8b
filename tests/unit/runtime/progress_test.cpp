#include "runtime/progress.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <functional>
#include <nexar/error.hpp>
#include <utility>
#include <vector>

#include "unit/runtime/fake_node.hpp"
#include "unit/runtime/function_continuation.hpp"

// Tests that need no second thread: they use a user loop, so that no background thread runs.

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;

bool readable(int descriptor) {
    pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) == 1;
}

Errc code_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.code();
    }
    return Errc{};
}

TEST(progress, wait_drives_until_the_completion_is_done) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    Completion first;
    Completion second;
    node.expect(7, first);
    node.expect(9, second);
    node.carrier().arrive(9);
    EXPECT_TRUE(progress->wait(second, soon()));
    EXPECT_FALSE(first.done());
    node.carrier().arrive(7);
    EXPECT_TRUE(progress->wait(first, soon()));
}

TEST(progress, waiting_for_a_done_completion_takes_no_turn) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    Completion completion;
    node.complete_now(completion);
    EXPECT_TRUE(progress->wait(completion));
    EXPECT_EQ(node.turns(), 0U);
}

TEST(progress, a_wait_returns_at_its_deadline_and_can_be_repeated) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    Completion completion;
    node.expect(3, completion);
    const TimePoint deadline = SteadyClock{}.now() + 3ms;
    EXPECT_FALSE(progress->wait(completion, deadline));
    EXPECT_GE(SteadyClock{}.now(), deadline);
    node.carrier().arrive(3);
    EXPECT_TRUE(progress->wait(completion, soon()));
}

TEST(progress, a_wait_whose_deadline_has_passed_still_takes_one_turn) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    Completion completion;
    node.expect(3, completion);
    node.carrier().arrive(3);
    EXPECT_TRUE(progress->wait(completion, SteadyClock{}.now() - 1s));
}

TEST(progress, a_driver_wakes_for_the_deadline_of_a_node) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    Completion completion;
    const TimePoint due = SteadyClock{}.now() + 5ms;
    node.complete_at(due, completion);
    EXPECT_TRUE(progress->wait(completion, soon()));
    EXPECT_GE(SteadyClock{}.now(), due);
}

TEST(progress, a_driver_with_nothing_to_do_sleeps) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    Completion never;
    EXPECT_FALSE(progress->wait(never, SteadyClock{}.now() + 50ms));
    // Spinning takes some hundred turns in its 100 us; 50 ms of it would take tens of thousands.
    EXPECT_LT(node.turns(), 2000U);
}

TEST(progress, a_driver_does_not_spin_while_ranks_outnumber_processors) {
    const auto progress = make_progress({.drive = Progress::Drive::user_loop, .spin = 60s});
    FakeNode node(*progress);
    progress->set_local_ranks(1'000'000);
    EXPECT_TRUE(progress->crowded());
    Completion never;
    EXPECT_FALSE(progress->wait(never, SteadyClock{}.now() + 50ms));
    // It sleeps after some yields; 50 ms of spinning would take tens of thousands of turns.
    EXPECT_LT(node.turns(), 2000U);
}

TEST(progress, wait_any_returns_the_index_of_a_done_completion) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    std::array<Completion, 3> all;
    std::vector<Completion*> set;
    for (std::uint64_t i = 0; i < all.size(); ++i) {
        node.expect(i, all[i]);
        set.push_back(&all[i]);
    }
    node.carrier().arrive(1);
    EXPECT_EQ(progress->wait_any(set, soon()), 1U);
    EXPECT_EQ(progress->wait_any(set, soon()), 1U);
    std::erase(set, &all[1]);
    EXPECT_EQ(progress->wait_any(set, SteadyClock{}.now() + 1ms), std::nullopt);
    node.carrier().arrive(0);
    node.carrier().arrive(2);
    EXPECT_TRUE(progress->wait_any(set, soon()));
    EXPECT_TRUE(progress->wait(all[0], soon()));
    EXPECT_TRUE(progress->wait(all[2], soon()));
}

TEST(progress, a_completion_may_be_destroyed_as_soon_as_it_is_done) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    auto completion = std::make_unique<Completion>();
    auto& released = completion;
    FunctionContinuation call([] {});
    ASSERT_TRUE(completion->then(call));
    {
        const Progress::Guard guard(*progress);
        progress->complete(*completion);
        released.reset();
    }
    progress->poll();
}

TEST(progress, continuations_run_in_poll_in_order_of_completion_and_without_the_lock) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    std::vector<int> order;
    std::array<Completion, 4> done;
    std::vector<std::unique_ptr<FunctionContinuation>> calls;
    for (int i = 0; i < 4; ++i) {
        calls.push_back(std::make_unique<FunctionContinuation>([&, i] {
            const Progress::Guard free(*progress);  // would throw if this thread held it
            order.push_back(i);
        }));
        ASSERT_TRUE(done[static_cast<std::size_t>(i)].then(*calls.back()));
    }
    EXPECT_FALSE(readable(progress->descriptor()));
    for (const std::size_t i : {2U, 0U, 3U, 1U}) node.complete_now(done[i]);
    EXPECT_TRUE(order.empty());
    EXPECT_TRUE(readable(progress->descriptor()));
    progress->poll();
    EXPECT_EQ(order, (std::vector<int>{2, 0, 3, 1}));
    EXPECT_FALSE(readable(progress->descriptor()));
}

TEST(progress, then_on_a_done_completion_returns_false_and_calls_nothing) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    Completion completion;
    node.complete_now(completion);
    bool ran = false;
    FunctionContinuation call([&] { ran = true; });
    EXPECT_FALSE(completion.then(call));
    progress->poll();
    EXPECT_FALSE(ran);
}

TEST(progress, a_wait_inside_a_continuation_completes_and_runs_no_other_continuation) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    std::vector<int> order;
    Completion first;
    Completion second;
    Completion inner;
    node.expect(5, inner);
    FunctionContinuation outer([&] {
        node.carrier().arrive(5);
        EXPECT_TRUE(progress->wait(inner, soon()));
        progress->poll();
        order.push_back(1);
    });
    FunctionContinuation other([&] { order.push_back(2); });
    ASSERT_TRUE(first.then(outer));
    ASSERT_TRUE(second.then(other));
    node.complete_now(first);
    node.complete_now(second);
    progress->poll();
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(progress, a_continuation_withdrawn_before_or_after_completion_does_not_run) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    int ran = 0;
    FunctionContinuation call([&] { ++ran; });
    Completion pending;
    ASSERT_TRUE(pending.then(call));
    EXPECT_TRUE(progress->withdraw(pending, call));
    node.complete_now(pending);
    Completion complete;
    ASSERT_TRUE(complete.then(call));
    node.complete_now(complete);
    EXPECT_TRUE(progress->withdraw(complete, call));
    progress->poll();
    EXPECT_EQ(ran, 0);
    complete.rearm();
    ASSERT_TRUE(complete.then(call));
    node.complete_now(complete);
    progress->poll();
    EXPECT_EQ(ran, 1);
    EXPECT_FALSE(progress->withdraw(complete, call));
}

TEST(progress, the_user_loop_is_woken_when_the_next_deadline_becomes_earlier) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    Completion late;
    Completion early;
    const TimePoint now = SteadyClock{}.now();
    EXPECT_EQ(progress->next_deadline(), std::nullopt);
    node.complete_at(now + 20s, late);
    EXPECT_TRUE(readable(progress->descriptor()));
    progress->poll();
    EXPECT_FALSE(readable(progress->descriptor()));
    EXPECT_EQ(progress->next_deadline(), now + 20s);
    node.complete_at(now - 1s, early);
    EXPECT_TRUE(readable(progress->descriptor()));
    progress->poll();
    EXPECT_TRUE(early.done());
    EXPECT_FALSE(late.done());
    EXPECT_EQ(progress->next_deadline(), now + 20s);
}

TEST(progress, the_user_loop_sees_input_and_writability) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    EXPECT_FALSE(readable(progress->descriptor()));
    node.carrier().arrive(1);
    EXPECT_TRUE(readable(progress->descriptor()));
    progress->poll();
    EXPECT_FALSE(readable(progress->descriptor()));
    node.want_write(true);
    EXPECT_TRUE(readable(progress->descriptor()));
    node.want_write(false);
    EXPECT_FALSE(readable(progress->descriptor()));
}

TEST(progress, a_removed_node_is_neither_driven_nor_watched) {
    const auto progress = make_user_loop();
    FakeNode kept(*progress);
    std::uint64_t turns = 0;
    {
        FakeNode gone(*progress);
        gone.carrier().arrive(1);
        EXPECT_TRUE(readable(progress->descriptor()));
        turns = kept.turns();
    }
    EXPECT_FALSE(readable(progress->descriptor()));
    progress->poll();
    EXPECT_EQ(kept.turns(), turns + 1);
}

TEST(progress, a_carrier_whose_descriptor_cannot_be_watched_is_refused_and_not_driven) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    struct Twice final : Driven {
        explicit Twice(FakeNode& of) : node(of) {}
        std::span<port::Carrier* const> carriers() const noexcept override {
            return node.carriers();
        }
        bool turn(TimePoint /*now*/) noexcept override { return ++turns != 0; }
        std::optional<TimePoint> next_deadline() const noexcept override { return {}; }
        FakeNode& node;
        int turns = 0;
    } twice(node);
    const auto added = progress->add(twice);
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().code(), Errc::bad_config);
    progress->poll();
    EXPECT_EQ(twice.turns, 0);
    node.carrier().arrive(1);
    EXPECT_TRUE(readable(progress->descriptor()));
}

TEST(progress, calls_from_under_the_lock_are_refused_as_reentrant) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    Completion completion;
    const std::vector<std::function<void()>> calls = {
        [&] { const Progress::Guard guard(*progress); },
        [&] { static_cast<void>(progress->wait(completion)); },
        [&] { progress->poll(); },
        [&] { static_cast<void>(progress->next_deadline()); },
    };
    for (const auto& call : calls) {
        Errc code{};
        FunctionSubmission meddler([&] { code = code_of(call); });
        progress->post(meddler);
        EXPECT_EQ(code, Errc::reentrant_call);
    }
    node.complete_now(completion);
    EXPECT_TRUE(progress->wait(completion));
}

TEST(progress, stop_runs_pending_continuations) {
    const auto progress = make_user_loop();
    FakeNode node(*progress);
    int ran = 0;
    FunctionContinuation call([&] { ++ran; });
    Completion completion;
    ASSERT_TRUE(completion.then(call));
    node.complete_now(completion);
    progress->stop();
    progress->stop();
    EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace nexar::runtime

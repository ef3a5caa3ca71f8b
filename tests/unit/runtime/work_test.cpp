#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <coroutine>
#include <future>
#include <nexar/nexar.hpp>
#include <thread>
#include <vector>

namespace nexar {
namespace {

using namespace std::chrono_literals;

/// A minimal coroutine type: starts at once and destroys itself at its end.
struct Detached {
    // NOLINTBEGIN(readability-identifier-naming): names that the language requires
    struct promise_type {
        Detached get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
    // NOLINTEND(readability-identifier-naming)
};

class WorkTest : public ::testing::Test {
protected:
    WorkTest() : nodes_(local_cluster(2)), a_(nodes_[0].world()), b_(nodes_[1].world()) {}

    std::vector<Node> nodes_;
    Communicator a_;
    Communicator b_;
};

Detached echo_once(Communicator world, std::atomic<int>& state) {
    int value = 0;
    const Status status = co_await world.recv(std::span(&value, 1), 0);
    value *= 2;
    co_await world.send(std::span(&value, 1), status.source);
    Work<Status> never = world.recv(std::span(&value, 1), 0);
    never.cancel();
    try {
        co_await never;
    } catch (const Error& error) {
        state = static_cast<int>(error.code());
    }
}

TEST_F(WorkTest, can_be_awaited_in_any_coroutine) {
    std::atomic<int> state = 0;
    echo_once(b_, state);
    int value = 21;
    a_.send(std::span(&value, 1), 1).wait();
    a_.recv(std::span(&value, 1), 1).wait();
    EXPECT_EQ(value, 42);
    while (state == 0) std::this_thread::yield();
    EXPECT_EQ(state, static_cast<int>(Errc::cancelled));
}

Detached call_twice(const Node& node, std::promise<Errc>& end) {
    const int four = co_await node.call<int>(1, "twice", 2);
    const int eight = co_await node.call<int>(1, "twice", four);
    EXPECT_EQ(eight, 8);
    try {
        static_cast<void>(co_await node.call<int>(1, "unknown", eight));
    } catch (const Error& error) {
        end.set_value(error.code());
    }
}

TEST_F(WorkTest, a_call_can_be_awaited) {
    const auto twice = nodes_[1].serve("twice", [](int x) { return 2 * x; });
    std::promise<Errc> end;
    call_twice(nodes_[0], end);
    auto future = end.get_future();
    ASSERT_EQ(future.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    EXPECT_EQ(future.get(), Errc::unknown_function);
}

TEST_F(WorkTest, passes_a_value_or_an_error_to_its_callback) {
    std::array<int, 1> got{};
    std::atomic<int> calls = 0;
    b_.recv(std::span(got), 0, 1).then([&](const Result<Status>& outcome) {
        EXPECT_TRUE(outcome.has_value());
        ++calls;
    });
    const std::array<int, 2> sent{1, 2};
    a_.send(std::span(sent).first(1), 1, 1).wait();
    b_.recv(std::span(got), 0, 2).then([&](const Result<Status>& outcome) {
        EXPECT_EQ(outcome.error().code(), Errc::truncated);
        ++calls;
    });
    a_.send(std::span(sent), 1, 2).wait();
    while (calls != 2) std::this_thread::yield();
}

TEST_F(WorkTest, a_callback_may_wait_for_another_work) {
    std::array<int, 1> first{};
    std::array<int, 1> second{};
    std::atomic<int> sum = 0;
    b_.recv(std::span(first), 0, 1).then([&](const Result<Status>& /*outcome*/) {
        b_.recv(std::span(second), 0, 2).wait();
        sum = first[0] + second[0];
    });
    const std::array<int, 1> one{1};
    const std::array<int, 1> two{2};
    a_.send(std::span(one), 1, 1).wait();
    a_.send(std::span(two), 1, 2).wait();
    while (sum == 0) std::this_thread::yield();
    EXPECT_EQ(sum, 3);
}

TEST_F(WorkTest, converts_to_a_future) {
    std::array<int, 1> got{};
    auto future = b_.recv(std::span(got), 0, 1).future();
    const std::array<int, 1> sent{5};
    a_.send(std::span(sent), 1, 1).wait();
    EXPECT_EQ(future.get().count<int>(), 1U);
    EXPECT_EQ(got, sent);
    std::array<int, 1> never{};
    auto cancelled = b_.recv(std::span(never), 0, 1);
    cancelled.cancel();
    EXPECT_THROW(std::move(cancelled).future().get(), Error);
}

TEST_F(WorkTest, can_be_waited_for_in_a_list) {
    std::array<std::array<int, 1>, 3> got{};
    std::vector<Work<Status>> works;
    for (std::uint64_t tag = 0; tag < 3; ++tag) {
        works.push_back(b_.recv(std::span(got[tag]), 0, tag));
    }
    EXPECT_FALSE(wait_any(works, std::chrono::steady_clock::now() + 10ms));
    EXPECT_FALSE(wait_any(works, 1ms));
    EXPECT_TRUE(wait_some(works, 0s).empty());
    const std::array<int, 1> sent{7};
    a_.send(std::span(sent), 1, 1).wait();
    EXPECT_EQ(wait_any(std::span(works)), 1U);
    EXPECT_EQ(wait_some(works, 20s), std::vector<std::size_t>{1});
    works[1].wait();
    a_.send(std::span(sent), 1, 0).wait();
    a_.send(std::span(sent), 1, 2).wait();
    works.erase(works.begin() + 1);
    const auto all = wait_all(std::span(works));
    EXPECT_EQ(all[0].tag, 0U);
    EXPECT_EQ(all[1].tag, 2U);
}

TEST_F(WorkTest, works_of_nodes_without_a_common_loop_cannot_be_waited_for_together) {
    auto others = local_cluster(1);
    std::array<int, 2> got{};
    std::vector<Work<Status>> works;
    works.push_back(b_.recv(std::span(got).first(1), 0, 1));
    works.push_back(others[0].world().recv(std::span(got).last(1), 0, 1));
    EXPECT_THROW(wait_any(std::span(works)), Error);
    for (Work<Status>& work : works) work.cancel();
}

TEST_F(WorkTest, destructor_waits_so_that_memory_is_never_touched_later) {
    std::vector<int> got(100'000);
    const std::vector<int> sent(100'000, 3);
    std::thread sender;
    {
        const Work<Status> dropped = b_.recv(std::span(got), 0, 1);
        EXPECT_FALSE(dropped.done());
        sender = std::thread([&] { a_.send(std::span(sent), 1, 1).wait(); });
    }
    EXPECT_EQ(got, sent);
    sender.join();
}

TEST_F(WorkTest, is_cancelled_during_stack_unwinding) {
    std::array<int, 1> got{};
    try {
        const Work<Status> never = b_.recv(std::span(got), 0, 1);
        throw std::runtime_error("something else went wrong");
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "something else went wrong");
    }
}

TEST(WorkLimits, at_most_max_pending_operations_are_in_flight) {
    auto nodes = local_cluster(1, {.max_pending = 3});
    Communicator world = nodes[0].world();
    std::array<int, 4> got{};
    std::vector<Work<Status>> works;
    for (int& place : got) works.push_back(world.recv(std::span(&place, 1), 0, 1));
    const auto refused = works[3].result();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::too_many_pending);
    EXPECT_THAT(refused.error().what(), ::testing::HasSubstr("3 operations"));
    for (int i = 0; i < 3; ++i) works[static_cast<std::size_t>(i)].cancel();
    const int value = 1;
    works[0] = world.recv(std::span(&got[0], 1), 0, 1);
    world.send(std::span(&value, 1), 0, 1).wait();
    works[0].wait();
    EXPECT_EQ(got[0], 1);
}

// Closing would have to join the thread that runs the callback.
TEST(WorkCallback, cannot_stop_the_loop_that_runs_it) {
    auto nodes = local_cluster(1);
    std::array<int, 1> value{1};
    std::array<int, 1> got{};
    std::atomic<int> code = 0;
    nodes[0].world().recv(std::span(got), 0).then([&](const Result<Status>& /*outcome*/) {
        try {
            nodes[0].close();
        } catch (const Error& error) {
            code = static_cast<int>(error.code());
        }
    });
    nodes[0].world().send(std::span(value), 0).wait();
    while (code == 0) std::this_thread::yield();
    EXPECT_EQ(code, static_cast<int>(Errc::reentrant_call));
}

TEST(WorkInForkedChild, is_refused_and_the_parent_continues) {
    auto nodes = local_cluster(2);
    std::array<int, 1> value{4};
    const pid_t child = ::fork();
    if (child == 0) {
        int code = 1;
        try {
            nodes[0].world().send(std::span(value), 1).wait();
        } catch (const Error& error) {
            code = error.code() == Errc::forked ? 0 : 2;
        }
        ::_exit(code);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    std::array<int, 1> got{};
    nodes[0].world().send(std::span(value), 1).wait();
    nodes[1].world().recv(std::span(got), 0).wait();
    EXPECT_EQ(got, value);
}

TEST(EmptyWork, counts_as_completed) {
    Work<> empty;
    EXPECT_FALSE(empty.valid());
    EXPECT_TRUE(empty.done());
    EXPECT_TRUE(empty.wait_for(1h));
    empty.cancel();
    empty.wait();
    EXPECT_TRUE(empty.result().has_value());
    bool called = false;
    std::move(empty).then([&](const Result<void>& outcome) { called = outcome.has_value(); });
    EXPECT_TRUE(called);
    Work<>().future().get();
    Work<> another;
    wait_all(another);
}

TEST(EmptyWork, has_the_status_of_no_rank_if_it_is_a_receive) {
    const Status nothing{.source = no_rank, .tag = 0, .bytes = 0};
    Work<Status> empty;
    EXPECT_EQ(empty.wait(), nothing);
    EXPECT_EQ(empty.wait(), nothing) << "a second time";
    EXPECT_EQ(std::move(empty).future().get(), nothing);
}

TEST(EmptyWork, is_an_error_if_it_should_return_a_value) {
    Work<Message> message;
    EXPECT_TRUE(message.done());
    EXPECT_EQ(message.result().error().code(), Errc::invalid_argument);
    EXPECT_THROW(static_cast<void>(message.wait()), Error);
    Work<int> number;
    EXPECT_EQ(number.result().error().code(), Errc::invalid_argument);
    EXPECT_THROW(std::move(number).future().get(), Error);
    std::vector<Work<int>> numbers(2);
    EXPECT_THROW(wait_all(std::span(numbers)), Error);
}

TEST(EmptyWork, is_ignored_by_wait_any_and_wait_some) {
    std::vector<Work<>> none(3);
    EXPECT_EQ(wait_any(std::span(none)), std::nullopt);
    EXPECT_TRUE(wait_some(std::span(none)).empty());
}

Detached await_nothing(Status& status, bool& went_on) {
    Work<> nothing;
    co_await nothing;
    Work<Status> no_status;
    status = co_await no_status;
    went_on = true;
}

TEST(EmptyWork, can_be_awaited) {
    Status status;
    bool went_on = false;
    await_nothing(status, went_on);
    EXPECT_TRUE(went_on);
    EXPECT_EQ(status.source, no_rank);
}

// The counterpart of MPI_REQUEST_NULL: at the end of a chain a rank has only one neighbour.
TEST_F(WorkTest, the_work_of_a_missing_neighbour_may_stay_empty_in_a_list) {
    std::array<std::array<int, 2>, 2> got{};
    const std::array<int, 1> value{5};
    std::vector<Work<Status>> receives(2);
    receives[1] = a_.recv(std::span(got[1]), 1);
    std::vector<Work<>> sends(2);
    sends[0] = b_.send(std::span(value), 0);
    wait_all(std::span(sends));
    const auto statuses = wait_all(std::span(receives));
    EXPECT_EQ(statuses[0].source, no_rank);
    EXPECT_EQ(statuses[1].source, 1);
    EXPECT_EQ(receives[1].wait().source, no_rank) << "its value was taken";
    Work<> moved = std::move(sends[0]);
    sends[0].wait();
    wait_all(moved, sends[1], receives[0]);
}

int end_of_child(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
}

// As when a child returns from the function that owns the node and destroys everything.
TEST(WorkInForkedChild, is_destroyed_quietly_with_its_node) {
    auto nodes = local_cluster(3);
    Communicator world = nodes[0].world();
    std::array<int, 1> got{};
    std::array<int, 1> unused{};
    const std::array<int, 1> value{11};
    auto pending = world.recv(std::span(got), 1, 1);
    auto taken = world.matched_probe(1, 2);
    nodes[1].world().send(std::span(value), 0, 2).wait();
    ASSERT_TRUE(taken.wait_for(30s));
    const pid_t child = ::fork();
    if (child == 0) {
        {
            std::vector<Node> ours = std::move(nodes);
            Communicator duplicate = std::move(world);
            Work<Status> receive = std::move(pending);
            Message message = taken.wait();
            receive.cancel();
            try {
                duplicate.recv(std::span(unused), 1).wait();
                ::_exit(3);
            } catch (const Error& error) {
                if (error.code() != Errc::forked) ::_exit(4);
            }
            ours.pop_back();
        }
        ::_exit(7);
    }
    const int status = end_of_child(child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
    // The parent is unaffected.
    nodes[1].world().send(std::span(value), 0, 1).wait();
    EXPECT_EQ(pending.wait().source, 1);
    EXPECT_EQ(got, value);
    EXPECT_EQ(taken.wait().recv(std::span(unused)).wait().bytes, sizeof(int));
    for (Node& node : nodes) node.close();
}

TEST(UserLoop, makes_all_progress_through_poll) {
    auto nodes = local_cluster(2, {.progressing = Progressing::user_loop});
    std::vector<int> sent(300'000, 6);
    std::vector<int> got(sent.size());
    bool received = false;
    bool released = false;
    nodes[1].world().recv(std::span(got), 0).then([&](const Result<Status>& outcome) {
        received = outcome.has_value();
    });
    nodes[0].world().send(std::span(sent), 1).then([&](const Result<void>& outcome) {
        released = outcome.has_value();
    });
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!(received && released) && std::chrono::steady_clock::now() < end) {
        int timeout_ms = 1000;
        if (const auto due = nodes[0].next_deadline()) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(
                *due - std::chrono::steady_clock::now());
            timeout_ms = std::clamp(static_cast<int>(left.count()), 0, timeout_ms);
        }
        pollfd watched{.fd = nodes[0].descriptor(), .events = POLLIN, .revents = 0};
        ASSERT_GE(::poll(&watched, 1, timeout_ms), 0);
        nodes[0].poll();
    }
    EXPECT_TRUE(received && released);
    EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace nexar

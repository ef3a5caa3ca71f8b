#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <nexar/nexar.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rpc_gate.hpp"

/// Calls through the public API.
namespace nexar {
namespace {

using namespace std::chrono_literals;
using testing::Gate;
using ::testing::HasSubstr;
using testing::UntilStopped;

class Rpc : public ::testing::Test {
protected:
    std::vector<Node> nodes_ = local_cluster(3);
};

template <class T>
Errc code_of(Work<T> work) {
    const auto result = work.result();
    return result ? Errc{} : result.error().code();
}

struct Point {
    std::int32_t x = 0;
    double y = 0;
};

TEST_F(Rpc, passes_values_strings_and_vectors) {
    const auto twice = nodes_[1].serve("twice", [](int x) { return 2 * x; });
    const auto moved = nodes_[1].serve("moved", [](const Call& call, Point p) {
        return Point{.x = p.x + call.caller, .y = p.y / 2};
    });
    const auto joined =
        nodes_[1].serve("joined", [](std::string_view a) { return std::string(a) + "!"; });
    const auto sum = nodes_[1].serve("sum", [](std::span<const double> values) {
        return std::accumulate(values.begin(), values.end(), 0.0);
    });
    const auto sorted = nodes_[1].serve("reversed", [](std::vector<std::uint16_t> values) {
        return std::vector<std::uint16_t>(values.rbegin(), values.rend());
    });
    const auto nothing = nodes_[1].serve(0, [] {});
    EXPECT_EQ(nodes_[0].call<int>(1, "twice", 21).wait(), 42);
    const auto point = nodes_[2].call<Point>(1, "moved", Point{.x = 5, .y = 3.0}).wait();
    EXPECT_EQ(point.x, 7);
    EXPECT_EQ(point.y, 1.5);
    EXPECT_EQ(nodes_[0].call<std::string>(1, "joined", std::string("hello")).wait(), "hello!");
    EXPECT_EQ(nodes_[0].call<double>(1, "sum", std::vector<double>{1, 2, 4.5}).wait(), 7.5);
    const std::vector<std::uint16_t> values{1, 2, 300};
    EXPECT_THAT(nodes_[0].call<std::vector<std::uint16_t>>(1, "reversed", values).wait(),
                ::testing::ElementsAre(300, 2, 1));
    nodes_[0].call<void>(1, 0).wait();
    EXPECT_TRUE(nodes_[0].call(1, 0).wait().empty());
}

TEST_F(Rpc, carries_large_payloads_both_ways) {
    const auto echo =
        nodes_[1].serve("echo", [](std::vector<std::uint32_t> values) { return values; });
    std::vector<std::uint32_t> sent(1'000'000);
    std::iota(sent.begin(), sent.end(), 17U);
    auto first = nodes_[0].call<std::vector<std::uint32_t>>(1, "echo", sent);
    auto copy = sent;
    auto second = nodes_[2].call<std::vector<std::uint32_t>>(1, "echo", std::move(copy));
    EXPECT_EQ(first.wait(), sent);
    EXPECT_EQ(second.wait(), sent);
}

TEST_F(Rpc, nodes_call_themselves_and_functions_call_functions) {
    const auto leaf = nodes_[2].serve("leaf", [](int x) { return x + 1; });
    const auto middle = nodes_[1].serve(
        "middle", [&](int x) { return nodes_[1].call<int>(2, "leaf", x).wait() * 10; });
    const auto top = nodes_[0].serve("top", [&](int x) {
        return nodes_[0].call<int>(1, "middle", x).wait() + nodes_[0].call<int>(0, "own", x).wait();
    });
    const auto own = nodes_[0].serve("own", [](int x) { return -x; });
    EXPECT_EQ(nodes_[0].call<int>(0, "top", 4).wait(), 46);
    EXPECT_EQ(nodes_[2].call<int>(0, "top", 5).wait(), 55);
}

TEST_F(Rpc, every_failure_has_its_own_error) {
    const auto thrower = nodes_[1].serve("thrower", [](int row) -> int {
        throw std::runtime_error("no row " + std::to_string(row));
    });
    FunctionOptions guarded;
    guarded.callers = {2};
    const auto secret = nodes_[1].serve("secret", [] { return 7; }, guarded);
    FunctionOptions narrow;
    narrow.max_request = 100;
    const auto small = nodes_[1].serve("small", [](const Payload& p) { return p; }, narrow);

    EXPECT_EQ(code_of(nodes_[0].call(1, "nowhere")), Errc::unknown_function);
    EXPECT_EQ(code_of(nodes_[0].call(1, 12)), Errc::unknown_function);
    const auto thrown = nodes_[0].call<int>(1, "thrower", 9).result();
    ASSERT_FALSE(thrown);
    EXPECT_EQ(thrown.error().code(), Errc::function_failed);
    EXPECT_EQ(thrown.error().cause(), "no row 9");
    EXPECT_EQ(thrown.error().rank(), 1);
    EXPECT_EQ(thrown.error().operation(), "call");
    EXPECT_EQ(code_of(nodes_[0].call<int>(1, "secret")), Errc::not_allowed);
    EXPECT_EQ(nodes_[2].call<int>(1, "secret").wait(), 7);
    EXPECT_EQ(code_of(nodes_[0].call(1, "small", Payload(101))), Errc::limit_exceeded);
    EXPECT_EQ(code_of(nodes_[0].call(1, "small", Payload(100'000))), Errc::limit_exceeded);
    CallOptions tight;
    tight.max_response = 10;
    EXPECT_EQ(code_of(nodes_[0].call(1, "small", Payload(11), tight)), Errc::limit_exceeded);
    EXPECT_EQ(code_of(nodes_[0].call<int>(1, "thrower", std::string("abc"))),
              Errc::invalid_argument);
    EXPECT_EQ(code_of(nodes_[0].call<std::int64_t>(1, "small", 5)), Errc::malformed);
    EXPECT_THROW((void)nodes_[0].call(3, "small"), Error);
    EXPECT_THROW((void)nodes_[0].call(-1, "small"), Error);
    EXPECT_THROW((void)nodes_[0].call(1, ""), Error);
    EXPECT_THROW((void)nodes_[0].call(1, std::string(65, 'x')), Error);
    EXPECT_THROW((void)nodes_[0].call(1, 65536), Error);
    EXPECT_THROW((void)nodes_[1].serve("secret", [] {}), Error);
}

TEST_F(Rpc, a_deadline_ends_the_call_and_stops_the_function) {
    std::atomic<int> stopped = 0;
    auto slow = nodes_[1].serve("slow", [&](const Call& call) {
        EXPECT_TRUE(call.deadline);
        Gate gate;
        const std::stop_callback tell(call.stop, [&] { gate.open(); });
        if (gate.pass()) ++stopped;
    });
    CallOptions options;
    options.timeout = 30ms;
    EXPECT_EQ(code_of(nodes_[0].call<void>(1, "slow", options)), Errc::timed_out);
    EXPECT_EQ(code_of(nodes_[1].call<void>(1, "slow", options)), Errc::timed_out);
    slow.stop();
    EXPECT_EQ(stopped, 2);
}

TEST_F(Rpc, cancelling_a_call_stops_its_function) {
    UntilStopped function;
    const auto slow = nodes_[1].serve("slow", function.body());
    auto work = nodes_[0].call<void>(1, "slow");
    EXPECT_FALSE(work.wait_for(0ms));
    ASSERT_TRUE(function.began.pass());
    work.cancel();
    EXPECT_EQ(code_of(std::move(work)), Errc::cancelled);
    EXPECT_TRUE(function.stopped.pass());
}

TEST_F(Rpc, a_function_is_stopped_when_its_caller_closes) {
    UntilStopped function;
    const auto slow = nodes_[1].serve("slow", function.body());
    auto work = nodes_[0].call<void>(1, "slow");
    ASSERT_TRUE(function.began.pass());
    nodes_[0].close();
    EXPECT_EQ(code_of(std::move(work)), Errc::closed);
    EXPECT_TRUE(function.stopped.pass());
}

TEST_F(Rpc, a_call_has_an_unknown_outcome_when_the_callee_closes) {
    UntilStopped function;
    const auto slow = nodes_[1].serve("slow", [&](const Call& call) {
        function.run(call);
        return 5;
    });
    auto work = nodes_[0].call<int>(1, "slow");
    ASSERT_TRUE(function.began.pass());
    nodes_[1].close();
    EXPECT_EQ(code_of(std::move(work)), Errc::outcome_unknown);
    EXPECT_EQ(code_of(nodes_[0].call<int>(1, "slow")), Errc::link_closed);
}

TEST_F(Rpc, stopping_a_function_waits_for_its_running_calls) {
    Gate began;
    Gate finish;
    std::atomic<bool> ran = false;
    auto served = nodes_[1].serve("once", [&] {
        began.open();
        EXPECT_TRUE(finish.pass());
        ran = true;
    });
    auto work = nodes_[0].call<void>(1, "once");
    ASSERT_TRUE(began.pass());
    std::thread ends([&] {
        served.stop();
        EXPECT_TRUE(ran);
    });
    // New calls fail as soon as stop() has begun.
    while (code_of(nodes_[0].call<void>(1, "once", CallOptions{.timeout = 5ms})) !=
           Errc::unknown_function) {
    }
    EXPECT_FALSE(ran);
    finish.open();
    ends.join();
    EXPECT_EQ(code_of(std::move(work)), Errc{});
    const auto again = nodes_[1].serve("once", [] {});
    nodes_[0].call<void>(1, "once").wait();
}

TEST_F(Rpc, a_function_may_stop_itself_but_not_close_its_node) {
    Served served;
    served = nodes_[1].serve("last", [&] { served.stop(); });
    nodes_[0].call<void>(1, "last").wait();
    EXPECT_EQ(code_of(nodes_[0].call<void>(1, "last")), Errc::unknown_function);
    const auto closer = nodes_[1].serve("closer", [&] { nodes_[1].close(); });
    const auto refused = nodes_[0].call<void>(1, "closer").result();
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause(), HasSubstr("reentrant_call"));
}

TEST_F(Rpc, functions_run_where_their_executor_puts_them) {
    std::mutex mutex;
    std::vector<std::function<void()>> given;
    Gate has;
    FunctionOptions options;
    options.executor = [&](std::function<void()> function) {
        const std::scoped_lock lock(mutex);
        given.push_back(std::move(function));
        has.open();
    };
    auto where = nodes_[1].serve("where", [] { return std::this_thread::get_id(); }, options);
    auto work = nodes_[0].call<std::thread::id>(1, "where");
    ASSERT_FALSE(work.wait_for(10ms));
    ASSERT_TRUE(has.pass());
    given.at(0)();
    EXPECT_EQ(work.wait(), std::this_thread::get_id());

    auto dropped = nodes_[0].call<std::thread::id>(1, "where");
    while (!dropped.wait_for(1ms)) {
        const std::scoped_lock lock(mutex);
        given.clear();
    }
    EXPECT_EQ(code_of(std::move(dropped)), Errc::function_failed);

    auto late = nodes_[0].call<std::thread::id>(1, "where");
    while (!late.wait_for(1ms)) {
        if (const std::scoped_lock lock(mutex); !given.empty()) break;
    }
    where.stop();
    EXPECT_EQ(code_of(std::move(late)), Errc::unknown_function);
    given.at(0)();  // too late: nothing happens

    FunctionOptions quick;
    quick.executor = inline_executor();
    const auto plus = nodes_[1].serve("plus", [](int x) { return x + 1; }, quick);
    EXPECT_EQ(nodes_[0].call<int>(1, "plus", 1).wait(), 2);
}

TEST_F(Rpc, calls_work_with_callbacks_futures_and_wait_any) {
    const auto plus = nodes_[1].serve("plus", [](int x) { return x + 1; });
    std::promise<int> told;
    nodes_[0].call<int>(1, "plus", 5).then([&](Result<int> r) { told.set_value(r.value()); });
    auto future = told.get_future();
    ASSERT_EQ(future.wait_for(30s), std::future_status::ready);
    EXPECT_EQ(future.get(), 6);
    EXPECT_EQ(nodes_[0].call<int>(1, "plus", 6).future().get(), 7);
    std::vector<Work<int>> works;
    for (int i = 0; i < 10; ++i) works.push_back(nodes_[2].call<int>(1, "plus", i));
    EXPECT_TRUE(wait_any(std::span(works)));
    const auto values = wait_all(std::span(works));
    for (int i = 0; i < 10; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], i + 1);
}

TEST_F(Rpc, a_wait_inside_a_function_runs_no_callbacks_of_other_works) {
    static thread_local bool inside = false;
    Gate finish;
    std::atomic<bool> waits = false;
    FunctionOptions outside;
    std::thread own;
    outside.executor = [&](std::function<void()> function) { own = std::thread(function); };
    const auto late = nodes_[0].serve("late", [&] { EXPECT_TRUE(finish.pass()); }, outside);
    const auto waiting = nodes_[1].serve("waiting", [&] {
        inside = true;
        auto work = nodes_[1].call<void>(0, "late");
        waits = true;
        work.wait();
        inside = false;
    });
    const auto plus = nodes_[1].serve("plus", [](int x) { return x + 1; });
    auto outer = nodes_[2].call<void>(1, "waiting");
    while (!waits) std::this_thread::yield();
    // This thread does not drive; the wait inside the function does.
    std::atomic<int> within = 0;
    for (int i = 0; i < 200; ++i) {
        std::promise<int> told;
        nodes_[0].call<int>(1, "plus", i).then([&](Result<int> result) {
            within += inside ? 1 : 0;
            told.set_value(result.value());
        });
        auto future = told.get_future();
        ASSERT_EQ(future.wait_for(30s), std::future_status::ready);
        EXPECT_EQ(future.get(), i + 1);
    }
    EXPECT_EQ(within, 0);
    finish.open();
    outer.wait();
    own.join();
}

TEST(RpcLoop, calls_complete_in_a_user_loop) {
    NodeOptions options;
    options.progressing = Progressing::user_loop;
    auto nodes = local_cluster(2, options);
    const auto plus = nodes[1].serve("plus", [](int x) { return x + 1; });
    auto work = nodes[0].call<int>(1, "plus", 1);
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!work.done() && std::chrono::steady_clock::now() < end) nodes[0].poll();
    EXPECT_EQ(work.wait(), 2);
}

}  // namespace
}  // namespace nexar

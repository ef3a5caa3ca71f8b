#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <nexar/nexar.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rpc_gate.hpp"

/// Calls from many threads, functions that block, and nodes that close while calls are pending.
namespace nexar {
namespace {

using namespace std::chrono_literals;
using testing::Gate;
using testing::UntilStopped;
using SteadyTime = std::chrono::steady_clock;

template <class T>
Errc code_of(Work<T>& work) {
    const auto result = work.result();
    return result ? Errc{} : result.error().code();
}

/// Bytes that depend on the seed and the position.
Payload bytes_for(std::uint32_t seed, std::size_t size) {
    Payload made(size);
    std::uint32_t state = seed * 2'654'435'761U + 1;
    for (std::byte& one : made) {
        state = state * 1'664'525U + 1'013'904'223U;
        one = static_cast<std::byte>(state >> 24U);
    }
    return made;
}

Payload reversed(Payload bytes) {
    std::ranges::reverse(bytes);
    return bytes;
}

enum class Kind : std::uint8_t {
    echo,
    large,
    unknown,
    thrown,
    forbidden,
    oversize_request,
    oversize_response,
    late,
    cancelled
};
constexpr std::uint32_t kKinds = 9;

/// The functions that a rank serves during the storm.
struct Services {
    explicit Services(const Node& node) {
        served.push_back(
            node.serve("reversed", [](Payload bytes) { return reversed(std::move(bytes)); }));
        served.push_back(node.serve("thrown", [](int x) -> int {
            throw std::runtime_error("thrown " + std::to_string(x));
        }));
        FunctionOptions nobody;
        nobody.callers.emplace();
        served.push_back(node.serve("forbidden", [] {}, nobody));
        FunctionOptions narrow;
        narrow.max_request = 64;
        served.push_back(node.serve("narrow", [](const Payload& p) { return p; }, narrow));
        served.push_back(node.serve(7, [](const Call& call) { UntilStopped().run(call); }));
    }
    std::vector<Served> served{};
};

/// One call of the storm and its expected outcome.
struct Shot {
    Kind kind{};
    std::uint32_t seed = 0;
    Payload argument{};
    Work<Payload> work{};

    void start(const Node& node, int to) {
        CallOptions options;
        switch (kind) {
            case Kind::echo:
            case Kind::large:
                argument =
                    bytes_for(seed, kind == Kind::echo ? seed % 900 : 17'000 + seed % 50'000);
                work = node.call(to, "reversed", argument);
                return;
            case Kind::unknown:
                work = node.call(to, "unknown");
                return;
            case Kind::thrown:
                work = node.call(to, "thrown", seed);
                return;
            case Kind::forbidden:
                work = node.call(to, "forbidden");
                return;
            case Kind::oversize_request:
                work = node.call(to, "narrow", Payload(65 + seed % 1000));
                return;
            case Kind::oversize_response:
                options.max_response = 10;
                argument = bytes_for(seed, 64);
                work = node.call(to, "reversed", argument, options);
                return;
            case Kind::late:
                options.timeout = 1ms * (1 + seed % 20);
                work = node.call(to, 7, options);
                return;
            case Kind::cancelled:
                work = node.call(to, 7);
                work.cancel();
                return;
        }
    }

    void check() {
        if (kind == Kind::echo || kind == Kind::large) {
            ASSERT_EQ(work.wait(), reversed(argument)) << seed;
            return;
        }
        const auto result = work.result();
        ASSERT_FALSE(result) << static_cast<int>(kind);
        constexpr std::array<Errc, kKinds> kExpected{Errc{},
                                                     Errc{},
                                                     Errc::unknown_function,
                                                     Errc::function_failed,
                                                     Errc::not_allowed,
                                                     Errc::limit_exceeded,
                                                     Errc::limit_exceeded,
                                                     Errc::timed_out,
                                                     Errc::cancelled};
        EXPECT_EQ(result.error().code(), kExpected.at(static_cast<std::size_t>(kind)))
            << result.error().what();
        if (kind == Kind::thrown) {
            EXPECT_EQ(result.error().cause(), "thrown " + std::to_string(seed));
        }
    }
};

void storm(int calls) {
    NodeOptions options;
    options.rpc.max_in_flight = 16384;
    options.rpc.max_held = std::size_t{1} << 30U;
    auto nodes = local_cluster(3, options);
    const Services one(nodes[1]);
    const Services two(nodes[2]);
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            std::vector<Shot> shots(static_cast<std::size_t>(calls / 4));
            for (std::uint32_t i = 0; i < shots.size(); ++i) {
                // Most calls pass data.
                const std::uint32_t dice = (i * 7 + t) % 32;
                shots[i].kind = dice < kKinds ? static_cast<Kind>(dice) : Kind::echo;
                shots[i].seed = t * 100'000 + i;
                shots[i].start(nodes[t % 2 == 0 ? 0 : 2], t < 2 ? 1 : 2);
            }
            for (Shot& shot : shots) shot.check();
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST(RpcStorm, ten_thousand_concurrent_calls_from_four_threads_each_get_their_answer) {
    storm(10'000);
}

TEST(RpcStorm, a_thousand_concurrent_calls_from_four_threads_each_get_their_answer) {
    storm(1000);
}

// The slow functions return only after the other calls were answered, so a call that waited for a
// slow function would hang.
TEST(RpcSlow, functions_that_do_not_return_delay_no_other_function) {
    auto nodes = local_cluster(2);
    Gate finish;
    std::atomic<int> sleeping = 0;
    const auto slow = nodes[1].serve("slow", [&] {
        ++sleeping;
        EXPECT_TRUE(finish.pass());
    });
    const auto quick = nodes[1].serve("quick", [](int x) { return x + 1; });
    const auto other = nodes[1].serve("other", [](int x) { return x + 2; });
    for (int i = 0; i < 100; ++i) EXPECT_EQ(nodes[0].call<int>(1, "quick", i).wait(), i + 1);
    // More calls than the pool has threads.
    std::vector<Work<void>> sleepers;
    for (int i = 0; i < 40; ++i) sleepers.push_back(nodes[0].call<void>(1, "slow"));
    while (sleeping == 0) EXPECT_EQ(nodes[0].call<int>(1, "quick", 1).wait(), 2);
    CallOptions soon;
    soon.timeout = 20s;
    for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(nodes[0].call<int>(1, "quick", i, soon).wait(), i + 1);
        EXPECT_EQ(nodes[0].call<int>(1, "other", i, soon).wait(), i + 2);
    }
    for (const auto& work : sleepers) EXPECT_FALSE(work.done());
    finish.open();
    for (auto& work : sleepers) work.wait();
    EXPECT_EQ(sleeping, 40);
}

TEST(RpcSlow, a_quick_function_that_blocks_once_delays_no_other_function) {
    auto nodes = local_cluster(2);
    Gate finish;
    const auto fickle = nodes[1].serve("fickle", [&](bool blocks) {
        if (blocks) {
            EXPECT_TRUE(finish.pass());
        }
    });
    const auto other = nodes[1].serve("other", [](int x) { return x + 2; });
    for (int i = 0; i < 200; ++i) nodes[0].call<void>(1, "fickle", false).wait();
    auto blocked = nodes[0].call<void>(1, "fickle", true);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(nodes[0].call<int>(1, "other", i).wait(), i + 2);
        nodes[0].call<void>(1, "fickle", false).wait();
    }
    EXPECT_FALSE(blocked.done());
    finish.open();
    blocked.wait();
}

TEST(RpcWaiting, waiting_functions_get_extra_threads_up_to_64_and_calls_beyond_are_refused) {
    NodeOptions options;
    options.rpc.threads = 2;
    auto nodes = local_cluster(2, options);
    Gate finish;
    FunctionOptions outside;
    std::vector<std::thread> own;
    std::mutex mutex;
    outside.executor = [&](std::function<void()> function) {
        const std::scoped_lock lock(mutex);
        own.emplace_back(std::move(function));
    };
    const auto late = nodes[0].serve(
        "late",
        [&](int x) {
            EXPECT_TRUE(finish.pass());
            return x;
        },
        outside);
    std::atomic<int> waiting = 0;
    const auto waits = nodes[1].serve("waits", [&](int x) {
        ++waiting;
        return nodes[1].call<int>(0, "late", x).wait() + 1;
    });
    std::vector<Work<int>> works;
    for (int i = 0; i < 63; ++i) works.push_back(nodes[0].call<int>(1, "waits", i));
    const auto end = SteadyTime::now() + 30s;
    while (waiting < 63 && SteadyTime::now() < end) std::this_thread::yield();
    ASSERT_EQ(waiting, 63) << "a pool of 2 threads starts extra threads while functions wait";
    // One thread is left to run a call or to fetch the next one; after that the pool is full.
    std::vector<Work<int>> more;
    for (int i = 0; i < 8; ++i) more.push_back(nodes[0].call<int>(1, "waits", 100 + i));
    int overloaded = 0;
    while (overloaded < 7 && SteadyTime::now() < end) {
        for (auto& work : more) {
            if (work.valid() && work.wait_for(1ms)) {
                EXPECT_EQ(code_of(work), Errc::overloaded);
                ++overloaded;
            }
        }
    }
    EXPECT_GE(overloaded, 7);
    finish.open();
    for (int i = 0; i < 63; ++i) {
        EXPECT_EQ(works[static_cast<std::size_t>(i)].wait(), i + 1);
    }
    for (auto& work : more) {
        if (work.valid()) (void)work.result();
    }
    for (std::thread& thread : own) thread.join();
}

TEST(RpcLimits, calls_beyond_the_callers_limit_fail_at_once_with_overloaded) {
    NodeOptions options;
    options.rpc.max_in_flight = 5;
    auto nodes = local_cluster(2, options);
    Gate finish;
    const auto slow = nodes[1].serve("slow", [&](int x) {
        EXPECT_TRUE(finish.pass());
        return x;
    });
    std::vector<Work<int>> works;
    for (int i = 0; i < 5; ++i) works.push_back(nodes[0].call<int>(1, "slow", i));
    auto sixth = nodes[0].call<int>(1, "slow", 5);
    EXPECT_EQ(code_of(sixth), Errc::overloaded);
    EXPECT_FALSE(works[0].done());
    finish.open();
    for (int i = 0; i < 5; ++i) EXPECT_EQ(works[static_cast<std::size_t>(i)].wait(), i);
    EXPECT_EQ(nodes[0].call<int>(1, "slow", 6).wait(), 6);
}

TEST(RpcChain, three_ranks_call_each_other_in_a_ring) {
    auto nodes = local_cluster(3);
    std::vector<Served> served;
    for (int rank = 0; rank < 3; ++rank) {
        const Node& self = nodes[static_cast<std::size_t>(rank)];
        served.push_back(self.serve("ring", [&self, rank](int left) {
            return left == 0 ? rank : self.call<int>((rank + 1) % 3, "ring", left - 1).wait();
        }));
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 20; ++i) {
                EXPECT_EQ(nodes[static_cast<std::size_t>(t)].call<int>(0, "ring", i % 12).wait(),
                          i % 12 % 3);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST(RpcClose, a_node_closes_with_calls_in_flight_in_both_directions) {
    auto nodes = local_cluster(3);
    const auto echo = nodes[1].serve("echo", [](Payload p) { return p; });
    const auto nested = nodes[1].serve(
        "nested", [&](const Payload& p) { return nodes[1].call(2, "wait", p).wait(); });
    const auto waits = nodes[2].serve("wait", [](const Call& call) { UntilStopped().run(call); });
    std::atomic<int> ended = 0;
    std::vector<std::thread> threads;
    for (const std::size_t from : {0U, 2U}) {
        threads.emplace_back([&, from] {
            const Payload argument = bytes_for(1, from == 0 ? 40 : 40'000);
            for (bool goes_on = true; goes_on;) {
                auto work = nodes[from].call(1, ended % 3 == 0 ? "nested" : "echo", argument,
                                             CallOptions{.timeout = 10s});
                if (ended % 3 == 0) work.wait_for(1ms);
                if (ended % 3 == 0) work.cancel();
                const Errc code = code_of(work);
                ++ended;
                goes_on = code != Errc::outcome_unknown && code != Errc::link_closed;
            }
        });
    }
    const auto end = SteadyTime::now() + 30s;
    while (ended < 20 && SteadyTime::now() < end) std::this_thread::yield();
    nodes[1].close();
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace nexar

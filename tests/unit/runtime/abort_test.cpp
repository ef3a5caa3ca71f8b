#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nexar/nexar.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "rpc_gate.hpp"

/// A rank aborts the program through the public API.
namespace nexar {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::UntilStopped;

constexpr auto kWhy = "the input file has no header";

/// The error with which a work or a call fails.
template <class T>
Error error_of(Work<T>& work) {
    const auto result = work.result();
    return result ? Error(Errc::malformed, "the work succeeded") : result.error();
}

template <class T>
Error error_of(Work<T>&& work) {
    return error_of(work);
}

Error thrown_by(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    }
    return {Errc::malformed, "the call threw nothing"};
}

void expect_aborted(const Error& error, int rank, int code, const std::string& why = kWhy) {
    EXPECT_EQ(error.code(), Errc::aborted) << error.what();
    EXPECT_EQ(error.abort_code(), code) << error.what();
    ASSERT_TRUE(error.rank()) << error.what();
    EXPECT_EQ(error.rank(), rank);
    EXPECT_EQ(error.cause(), "rank " + std::to_string(rank) + " aborted the program with code " +
                                 std::to_string(code) + (why.empty() ? "" : ": ") + why);
}

/// Every kind of call fails on a rank that knows of the abort.
void expect_all_fail(Node& node, Communicator& world, int rank, int code) {
    std::vector<std::uint32_t> some(20'000, 7);
    const std::span values(some);
    const int next = (world.rank() + 1) % world.size();
    const std::vector<Error> errors{
        error_of(world.send(values.first(3), next, 1)),
        error_of(world.send(values, next, 1)),
        error_of(world.send(values.first(3), world.rank(), 1)),
        error_of(world.recv(values, next, 1)),
        error_of(world.recv(values)),
        error_of(world.send_recv(values.first(5), next, values.last(5), next)),
        error_of(world.probe()),
        error_of(world.matched_probe(next)),
        error_of(world.barrier()),
        error_of(world.all_reduce(values, sum)),
        error_of(node.call<int>(next, "absent", 3)),
        thrown_by([&] { world.try_probe(); }),
        thrown_by([&] { world.try_matched_probe(); }),
        thrown_by([&] { world.duplicate(); }),
        thrown_by([&] { world.split(1); }),
        thrown_by([&] { world.subgroup(std::vector<int>{world.rank()}); }),
        thrown_by([&] { const auto late = node.serve("late", [](int x) { return x; }); })};
    for (std::size_t i = 0; i < errors.size(); ++i) {
        SCOPED_TRACE("call " + std::to_string(i) + " on rank " + std::to_string(world.rank()));
        expect_aborted(errors[i], rank, code);
    }
}

class AbortIn : public ::testing::TestWithParam<int> {
protected:
    AbortIn() {
        for (const Node& node : nodes_) worlds_.push_back(node.world());
    }

    int size() const { return GetParam(); }
    /// The rank that aborts.
    int last() const { return size() - 1; }

    std::vector<Node> nodes_ = local_cluster(GetParam());
    std::vector<Communicator> worlds_;
};

INSTANTIATE_TEST_SUITE_P(Worlds, AbortIn, ::testing::Values(1, 2, 3, 5),
                         [](const auto& world) { return std::to_string(world.param); });

TEST_P(AbortIn, fails_pending_messages_and_probes_on_every_rank) {
    std::vector<std::vector<std::uint64_t>> memory(worlds_.size());
    std::vector<Work<Status>> receives;
    std::vector<Work<>> sends;
    for (int rank = 0; rank < size(); ++rank) {
        Communicator& world = worlds_[static_cast<std::size_t>(rank)];
        auto& values = memory[static_cast<std::size_t>(rank)];
        values.resize(100'000);
        const int next = (rank + 1) % size();
        receives.push_back(world.recv(std::span(values).first(5), next, 1));
        receives.push_back(world.recv(std::span(values).subspan(5, 5), any_source, 2));
        receives.push_back(world.probe(any_source, 3));
        // Nobody receives these: the large send waits for a grant, the synchronous one for its
        // match.
        sends.push_back(world.send(std::span(values), next, 4));
        sends.push_back(world.send(std::span(values).first(5), next, 5, {.synchronous = true}));
    }
    worlds_[static_cast<std::size_t>(last())].abort(3, kWhy);
    for (auto& work : receives) expect_aborted(error_of(work), last(), 3);
    for (auto& work : sends) expect_aborted(error_of(work), last(), 3);
}

TEST_P(AbortIn, fails_messages_in_flight) {
    std::vector<std::vector<std::uint8_t>> out(worlds_.size(),
                                               std::vector<std::uint8_t>(8U << 20U, 9));
    std::vector<std::vector<std::uint8_t>> in(worlds_.size(), std::vector<std::uint8_t>(8U << 20U));
    std::vector<Work<Status>> works;
    for (std::size_t rank = 0; rank < worlds_.size(); ++rank) {
        const int next = (static_cast<int>(rank) + 1) % size();
        const int before = (static_cast<int>(rank) + size() - 1) % size();
        works.push_back(
            worlds_[rank].send_recv(std::span(out[rank]), next, std::span(in[rank]), before));
    }
    worlds_[0].abort(-7, kWhy);
    for (auto& work : works) {
        const auto result = work.result();
        if (result) continue;  // it completed before the abort arrived
        expect_aborted(result.error(), 0, -7);
    }
    for (Communicator& world : worlds_) expect_aborted(error_of(world.barrier()), 0, -7);
}

TEST_P(AbortIn, fails_pending_collectives_in_every_communicator) {
    if (size() == 1) return;  // a single rank has no pending collectives
    std::vector<std::vector<std::uint64_t>> memory(worlds_.size());
    std::vector<Communicator> others;
    std::vector<Work<>> works;
    for (int rank = 1; rank < size(); ++rank) {
        Communicator& world = worlds_[static_cast<std::size_t>(rank)];
        auto& values = memory[static_cast<std::size_t>(rank)];
        values.resize(300'000);
        std::iota(values.begin(), values.end(), rank);
        others.push_back(world.duplicate());
        works.push_back(world.all_reduce(std::span(values), sum));
        works.push_back(world.barrier());
        works.push_back(others.back().broadcast(std::span(values).first(10), 0));
    }
    worlds_[0].abort(1, kWhy);
    for (auto& work : works) expect_aborted(error_of(work), 0, 1);
}

TEST_P(AbortIn, fails_pending_calls_and_stops_their_functions) {
    std::vector<UntilStopped> running(worlds_.size());
    std::vector<Served> served;
    std::vector<Work<Payload>> calls;
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
        served.push_back(nodes_[rank].serve("wait", running[rank].body()));
    }
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
        const auto next = (rank + 1) % nodes_.size();
        calls.push_back(nodes_[rank].call(static_cast<int>(next), "wait"));
    }
    for (UntilStopped& one : running) EXPECT_TRUE(one.began.pass());
    worlds_[static_cast<std::size_t>(last())].abort(3, kWhy);
    for (auto& call : calls) expect_aborted(error_of(call), last(), 3);
    for (UntilStopped& one : running) EXPECT_TRUE(one.stopped.pass());
}

TEST_P(AbortIn, makes_every_later_call_fail_on_every_rank) {
    worlds_[static_cast<std::size_t>(last())].abort(42, kWhy);
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
        // A rank that has not received the abort yet does so in a call that waits for another rank.
        if (size() > 1) expect_aborted(error_of(worlds_[rank].barrier()), last(), 42);
        expect_all_fail(nodes_[rank], worlds_[rank], last(), 42);
    }
}

TEST_P(AbortIn, is_reported_once_when_all_ranks_abort_at_the_same_time) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size(); ++rank) {
        threads.emplace_back(
            [&, rank] { worlds_[static_cast<std::size_t>(rank)].abort(10 + rank, "all at once"); });
    }
    threads.clear();
    for (Communicator& world : worlds_) {
        const Error first = error_of(world.barrier());
        ASSERT_TRUE(first.rank()) << first.what();
        const int rank = *first.rank();
        expect_aborted(first, rank, 10 + rank, "all at once");
        EXPECT_EQ(error_of(world.recv(std::span<int>{})).rank(), first.rank())
            << "a rank keeps reporting the first abort that it learnt of";
    }
}

TEST_P(AbortIn, lets_nodes_close_afterwards) {
    worlds_[0].abort(3, kWhy);
    for (Communicator& world : worlds_) expect_aborted(error_of(world.barrier()), 0, 3);
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
        nodes_[rank].close();
        expect_aborted(error_of(worlds_[rank].barrier()), 0, 3);
    }
    EXPECT_EQ(thrown_by([&] { worlds_[0].abort(3, kWhy); }).code(), Errc::closed);
}

TEST(Abort, aborting_a_subgroup_names_the_rank_in_the_world) {
    auto nodes = local_cluster(3);
    std::vector<Communicator> worlds;
    for (const Node& node : nodes) worlds.push_back(node.world());
    auto pair = worlds[2].subgroup(std::vector<int>{2, 1});
    ASSERT_TRUE(pair);
    EXPECT_EQ(pair->rank(), 0);
    std::array<int, 1> value{};
    // Rank 0 is not a member of the aborted communicator.
    auto work = worlds[0].recv(std::span(value), 1);
    pair->abort(300, kWhy);
    expect_aborted(error_of(work), 2, 300);
}

TEST(Abort, the_reason_is_optional_truncated_and_escaped) {
    for (const std::string& why :
         {std::string(), std::string("two\nlines"), std::string(5000, 'x')}) {
        auto nodes = local_cluster(2);
        Communicator world = nodes[0].world();
        Communicator other = nodes[1].world();
        auto work = other.barrier();
        world.abort(0, why);
        const Error error = error_of(work);
        EXPECT_EQ(error.abort_code(), 0);
        if (why.empty()) {
            EXPECT_EQ(error.cause(), "rank 0 aborted the program with code 0");
        } else if (why.size() < 100) {
            EXPECT_THAT(error.cause(), HasSubstr("code 0: two\\nlines"));
        } else {
            EXPECT_LT(error.cause().size(), 1100U);
            EXPECT_TRUE(error.cause().ends_with("x..."));
        }
    }
}

TEST(Abort, may_be_called_from_a_served_function) {
    auto nodes = local_cluster(2);
    const auto served = nodes[1].serve("end", [world = nodes[1].world()](int code) {
        world.abort(code, kWhy);
        return code;
    });
    expect_aborted(error_of(nodes[0].call<int>(1, "end", 6)), 1, 6);
}

TEST(Abort, may_be_called_from_a_callback) {
    auto nodes = local_cluster(2);
    Communicator first = nodes[0].world();
    Communicator second = nodes[1].world();
    std::array<int, 2> sent{1, 2};
    std::array<int, 2> got{};
    second.recv(std::span(got), 0, 1).then([second](const auto&) { second.abort(8, kWhy); });
    first.send(std::span(sent), 1, 1).wait();
    expect_aborted(error_of(first.recv(std::span(got), 1, 2)), 1, 8);
}

}  // namespace
}  // namespace nexar

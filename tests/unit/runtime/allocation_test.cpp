#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <nexar/nexar.hpp>
#include <string>
#include <vector>

#include "support/allocations.hpp"

// Both nodes run in this process, so the count covers both sides. It does not see what ngtcp2
// allocates with malloc.

namespace nexar {
namespace {

using ::nexar::testing::Allocations;

constexpr int kRounds = 4000;

TEST(Allocation, eager_messages_allocate_nothing_in_steady_state) {
    auto nodes = local_cluster(2);
    Communicator a = nodes[0].world();
    Communicator b = nodes[1].world();
    std::array<std::uint64_t, 4> value{};
    const auto exchange = [&](int rounds, bool expected) {
        for (int i = 0; i < rounds; ++i) {
            Work<Status> receive;
            if (expected) receive = b.recv(std::span(value), 0, 1);
            a.send(std::span(value), 1, 1).wait();
            if (!expected) {
                b.probe(0, 1).wait();
                receive = b.recv(std::span(value), 0, 1);
            }
            receive.wait();
        }
    };
    exchange(kRounds, true);
    exchange(kRounds, false);
    const Allocations allocations;
    exchange(kRounds, true);
    exchange(kRounds, false);
    // Growing queues of the library may allocate.
    EXPECT_LT(allocations.count(), kRounds / 20U) << "in " << 2 * kRounds << " messages";
}

/// Two nodes that share memory, and what both of them send and receive.
class AllocationInMemory : public ::testing::TestWithParam<std::size_t> {
protected:
    /// Expects that repeating `once` allocates nothing. Timers of the QUIC link may do so, a few
    /// times a second.
    void repeat(const std::string& what, const std::function<void()>& once) {
        for (int i = 0; i < kRounds; ++i) once();
        const Allocations allocations;
        for (int i = 0; i < kRounds; ++i) once();
        EXPECT_LT(allocations.count(), kRounds / 100U) << what << ", " << kRounds << " times";
    }

    std::size_t count() const { return GetParam() / sizeof(double); }

    std::vector<Node> nodes_ = local_cluster(2, {.link = "shm"});
    Communicator a_ = nodes_[0].world();
    Communicator b_ = nodes_[1].world();
    std::vector<double> in_a_ = std::vector<double>(count(), 1);
    std::vector<double> in_b_ = std::vector<double>(count(), 2);
    std::vector<double> out_a_ = std::vector<double>(2 * count());
    std::vector<double> out_b_ = std::vector<double>(2 * count());
};

TEST_P(AllocationInMemory, messages_allocate_nothing_in_steady_state) {
    const std::span out(out_b_.data(), count());
    repeat("receive, then send", [&] {
        auto receive = b_.recv(out, 0, 1);
        a_.send(in_a_, 1, 1).wait();
        receive.wait();
    });
    EXPECT_EQ(out_b_.front(), 1);
    repeat("send, then receive", [&] {
        a_.send(in_a_, 1, 1).wait();
        b_.recv(out, 0, 1).wait();
    });
}

TEST_P(AllocationInMemory, collectives_allocate_nothing_in_steady_state) {
    const std::span first_a(out_a_.data(), count());
    const std::span first_b(out_b_.data(), count());
    repeat("barrier", [&] {
        auto other = a_.barrier();
        b_.barrier().wait();
        other.wait();
    });
    repeat("all_reduce", [&] {
        auto other = a_.all_reduce(in_a_, first_a, sum);
        b_.all_reduce(in_b_, first_b, sum).wait();
        other.wait();
    });
    EXPECT_EQ(out_a_.front(), 3);
    repeat("broadcast", [&] {
        auto other = a_.broadcast(in_a_, 0);
        b_.broadcast(in_b_, 0).wait();
        other.wait();
    });
    repeat("all_gather", [&] {
        auto other = a_.all_gather(in_a_, out_a_);
        b_.all_gather(in_b_, out_b_).wait();
        other.wait();
    });
    EXPECT_EQ(out_b_.back(), 1) << "the broadcast changed the input";
}

INSTANTIATE_TEST_SUITE_P(Sizes, AllocationInMemory, ::testing::Values(8, 4096));

}  // namespace
}  // namespace nexar

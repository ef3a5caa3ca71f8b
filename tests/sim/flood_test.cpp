#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "cluster.hpp"
#include "support/link_end.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;

struct Send {
    port::ConstBytes region{};
    engine::SendOperation operation{};
    bool ended = false;
};

struct Receive {
    std::vector<std::byte> memory{};
    port::Bytes region{};
    engine::ReceiveOperation operation{};
    bool ended = false;
};

/// A sender that floods a node which has posted no receive.
class Flood : public ::testing::TestWithParam<std::size_t> {
protected:
    Flood() : cluster_(test_seed(5), 2), content_(pattern(1, GetParam())) {
        for (std::size_t i = 0; i < 2; ++i) {
            cluster_.node(i).on_done = [](engine::Operation& done) {
                EXPECT_FALSE(done.error) << done.error->what();
                *static_cast<bool*>(done.owner) = true;
            };
        }
    }

    Send& send(std::size_t context, std::uint64_t tag) {
        Send& sent = sends_.emplace_back();
        sent.region = content_;
        sent.operation.owner = &sent.ended;
        sent.operation.to = Rank(1);
        sent.operation.tag = Tag(tag);
        sent.operation.content = {&sent.region, 1};
        cluster_.node(0).engine().start(cluster_.context(0, context), sent.operation);
        cluster_.node(0).settle();
        return sent;
    }

    Receive& receive(std::size_t context, std::uint64_t tag) {
        Receive& received = receives_.emplace_back();
        received.memory.resize(content_.size());
        received.region = received.memory;
        received.operation.owner = &received.ended;
        received.operation.pattern = {.source = Rank(0), .tag = Tag(tag)};
        received.operation.content = {&received.region, 1};
        cluster_.node(1).engine().start(cluster_.context(1, context), received.operation);
        cluster_.node(1).settle();
        return received;
    }

    SimCluster cluster_;
    std::vector<std::byte> content_;
    std::deque<Send> sends_;
    std::deque<Receive> receives_;
};

TEST_P(Flood, uses_bounded_memory_and_does_not_block_another_communicator) {
    ASSERT_TRUE(cluster_.connect());
    // More than the credit allows at each size.
    const std::size_t count = content_.size() < 100         ? 40'000
                              : content_.size() < 1'000'000 ? 1'200
                                                            : 40;
    for (std::size_t i = 0; i < count; ++i) send(0, i == 1000 % count ? 77 : 1);
    cluster_.world().run_for(5s);
    const engine::EngineOptions limits;
    EXPECT_LE(cluster_.node(1).engine().messages(), limits.shared.headers + limits.reserve.headers);
    EXPECT_LE(cluster_.pool_bytes(), std::size_t{64} << 20U);

    // A message deep inside the flood, and one in another communicator.
    Receive& inside = receive(0, 77);
    Send& beside = send(1, 5);
    Receive& other = receive(1, 5);
    ASSERT_TRUE(cluster_.world().run_until(
        [&] { return inside.ended && beside.ended && other.ended; }, 60s));
    EXPECT_EQ(inside.memory, content_);
    EXPECT_EQ(other.memory, content_);

    for (std::size_t i = 0; i + 1 < count; ++i) {
        Receive& next = receive(0, 1);
        if (i % 64 != 0) continue;
        ASSERT_TRUE(cluster_.world().run_until([&] { return next.ended; }, 60s));
        EXPECT_EQ(next.memory, content_);
        while (receives_.size() > 1 && receives_.front().ended) receives_.pop_front();
    }
    ASSERT_TRUE(cluster_.world().run_until(
        [&] {
            return std::ranges::all_of(sends_, [](const Send& s) { return s.ended; }) &&
                   std::ranges::all_of(receives_, [](const Receive& r) { return r.ended; });
        },
        600s));
    EXPECT_EQ(cluster_.node(1).engine().messages(), 0U);
    cluster_.close();
}

INSTANTIATE_TEST_SUITE_P(sizes, Flood,
                         ::testing::Values(8, std::size_t{64} << 10U, std::size_t{16} << 20U));

}  // namespace
}  // namespace nexar::testing

// Several threads per rank run collectives on their own communicators, concurrently with each other
// and with messages.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <nexar/nexar.hpp>
#include <thread>
#include <vector>

#include "mixed_collective.hpp"
#include "ranks.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

constexpr std::size_t kWorld = 3;
constexpr std::size_t kCommunicators = 3;
constexpr std::size_t kEach = 334;  // about a thousand in total
constexpr std::size_t kAtOnce = 6;

/// A future that a callback of `work` completes, on whichever thread runs the callback.
std::future<Errc> ended(Work<> work) {
    auto promise = std::make_shared<std::promise<Errc>>();
    auto future = promise->get_future();
    std::move(work).then([promise](const Result<void>& result) {
        promise->set_value(result ? Errc{} : result.error().code());
    });
    return future;
}

/// Runs a few operations at a time; waits for half of them and uses callbacks for the others.
void run_batch(const Communicator& c, std::uint64_t seed) {
    std::vector<MixedCollective> operations;
    for (std::size_t i = 0; i < kAtOnce; ++i) {
        operations.push_back(MixedCollective::random(seed + i, kWorld, i == 0 ? 9000 : 60));
    }
    std::vector<Work<>> waited;
    std::vector<std::future<Errc>> called_back;
    for (std::size_t i = 0; i < kAtOnce; ++i) {
        Work<> work = operations[i].start(c);
        if (i % 2 == 0) {
            waited.push_back(std::move(work));
        } else {
            called_back.push_back(ended(std::move(work)));
        }
    }
    expect_success(waited);
    for (auto& future : called_back) {
        ASSERT_EQ(future.wait_for(kHang), std::future_status::ready);
        EXPECT_EQ(future.get(), Errc{});
    }
    for (const MixedCollective& operation : operations) {
        EXPECT_TRUE(operation.right(static_cast<std::size_t>(c.rank())));
    }
}

/// Exchanges messages with the next and the previous rank.
void run_messages(Communicator& c, std::uint64_t seed, std::size_t messages) {
    const int size = c.size();
    const auto rank = static_cast<std::size_t>(c.rank());
    const auto before = (rank + kWorld - 1) % kWorld;
    for (std::uint64_t i = 0; i < messages; ++i) {
        const std::size_t count = random_bits(seed, 0, i) % (i % 10 == 0 ? 9000 : 40);
        const auto sent = elements<std::int32_t>(Values::distinct, seed + i, rank, count);
        std::vector<std::int32_t> got(count);
        auto receive = c.recv(std::span(got), static_cast<int>(before), i % 3);
        auto send = c.send(std::span(sent), (c.rank() + 1) % size, i % 3);
        EXPECT_TRUE(outcome(receive).has_value());
        EXPECT_TRUE(outcome(send).has_value());
        EXPECT_TRUE(
            same(rank, got, elements<std::int32_t>(Values::distinct, seed + i, before, count)));
    }
}

/// Runs `body(thread, communicator)` for every thread of every rank; thread i uses
/// communicators[i].
void run_threads(const std::vector<std::vector<Communicator>>& communicators,
                 const std::function<void(std::size_t thread, Communicator&)>& body) {
    std::vector<Communicator> all;
    for (const auto& ranks : communicators) all.insert(all.end(), ranks.begin(), ranks.end());
    on_every_rank(all, [&](Communicator& c, std::size_t i) { body(i / kWorld, c); });
}

TEST(Mixed, a_thousand_collectives_on_three_communicators_run_alongside_messages) {
    const std::uint64_t seed = test_seed(400);
    std::vector<std::vector<Communicator>> communicators;
    for (std::size_t i = 0; i < kCommunicators; ++i) communicators.push_back(fresh_ranks(kWorld));
    communicators.push_back(communicators[0]);  // the fourth thread sends its messages there
    run_threads(communicators, [&](std::size_t thread, Communicator& c) {
        if (thread == kCommunicators) return run_messages(c, seed, 1000);
        for (std::size_t done = 0; done < kEach; done += kAtOnce) {
            run_batch(c, seed + thread * 100'000 + done);
            if (::testing::Test::HasFailure()) return;
        }
    });
}

TEST(Mixed, threads_of_all_ranks_split_and_drop_communicators_at_the_same_time) {
    std::vector<std::vector<Communicator>> communicators;
    for (std::size_t i = 0; i < kCommunicators; ++i) communicators.push_back(fresh_ranks(kWorld));
    run_threads(communicators, [](std::size_t thread, Communicator& c) {
        for (std::uint64_t round = 0; round < 20; ++round) {
            auto made = c.split(static_cast<std::uint32_t>(thread), -c.rank());
            ASSERT_TRUE(made.has_value());
            ASSERT_EQ(made->rank(), c.size() - 1 - c.rank());
            std::int64_t value = c.rank() + static_cast<std::int64_t>(round);
            const auto summed = outcome(made->all_reduce(std::span(&value, 1), sum));
            ASSERT_TRUE(summed) << summed.error().what();
            EXPECT_EQ(value, 3 + 3 * static_cast<std::int64_t>(round));
        }
    });
}

// Each callback starts the next collective; only the end of the chain is waited for.
void next_in_chain(Communicator c, std::shared_ptr<std::int64_t> value, int left,
                   std::shared_ptr<std::promise<std::int64_t>> end) {
    auto work = c.all_reduce(std::span(value.get(), 1), max);
    std::move(work).then([c, value, left, end](const Result<void>& result) {
        EXPECT_TRUE(result.has_value());
        if (left == 0 || !result) return end->set_value(*value);
        *value += c.rank();
        next_in_chain(c, value, left - 1, end);
    });
}

TEST(Mixed, callbacks_start_the_next_collective) {
    constexpr int kLinks = 200;
    auto ranks = fresh_ranks(kWorld);
    std::vector<std::future<std::int64_t>> ends;
    for (Communicator& rank : ranks) {
        auto end = std::make_shared<std::promise<std::int64_t>>();
        ends.push_back(end->get_future());
        next_in_chain(rank, std::make_shared<std::int64_t>(rank.rank()), kLinks, end);
    }
    for (auto& end : ends) {
        ASSERT_EQ(end.wait_for(kHang), std::future_status::ready);
        EXPECT_EQ(end.get(), 2 * (kLinks + 1));
    }
}

TEST(Mixed, no_thread_hangs_when_a_node_closes_during_collectives) {
    for (int round = 0; round < 5; ++round) {
        auto nodes = local_cluster(kWorld);
        auto ranks = worlds_of(nodes);
        std::atomic<int> through = 0;
        std::atomic<bool> over = false;
        std::jthread closer([&] {
            while (through < 30 && !over) std::this_thread::yield();
            nodes[static_cast<std::size_t>(round) % kWorld].close();
        });
        on_every_rank(ranks, [&](Communicator& c, std::size_t rank) {
            while (true) {
                std::vector<float> values(2000, static_cast<float>(rank));
                const auto result = outcome(c.all_reduce(std::span(values), sum));
                ++through;
                if (!result) return;
                EXPECT_EQ(values[1999], 3.0F);
            }
        });
        over = true;
        EXPECT_GE(through, 30);
    }
}

}  // namespace
}  // namespace nexar::testing

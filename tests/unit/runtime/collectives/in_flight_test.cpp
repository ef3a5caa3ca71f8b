// Many operations in flight at once.

#include <gtest/gtest.h>

#include <nexar/nexar.hpp>
#include <vector>

#include "mixed_collective.hpp"
#include "ranks.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

class InFlight : public WorldTest {
protected:
    /// Starts operation i on communicator i % 2 on every rank before it waits for any of them.
    void run_all(std::vector<MixedCollective>& operations, std::vector<Communicator>& others) {
        std::vector<Work<>> works;
        for (std::size_t rank = 0; rank < world(); ++rank) {
            for (std::size_t i = 0; i < operations.size(); ++i) {
                works.push_back(operations[i].start(i % 2 == 0 ? ranks_[rank] : others[rank]));
            }
        }
        for (std::size_t i = 0; i < works.size(); ++i) {
            // Wait neither in start order nor in rank order.
            const auto ended = outcome(works[i * 37 % works.size()]);
            if (!ended) ADD_FAILURE() << ended.error().what();
        }
        for (std::size_t i = 0; i < operations.size(); ++i) {
            for (std::size_t rank = 0; rank < world(); ++rank) {
                EXPECT_TRUE(operations[i].right(rank)) << "operation " << i;
            }
        }
    }
};

INSTANTIATE_TEST_SUITE_P(In, InFlight, ::testing::Values(1, 2, 3, 5, 8), world_name);

TEST_P(InFlight, sixty_four_operations_of_all_kinds_and_sizes_do_not_interfere) {
    const std::uint64_t seed = test_seed(100);
    std::vector<Communicator> others;
    for (Communicator& rank : ranks_) others.push_back(rank.duplicate());
    std::vector<MixedCollective> operations;
    for (std::size_t i = 0; i < 64; ++i) {
        const std::size_t most = i % 4 == 0 ? 6000 : 50;
        operations.push_back(MixedCollective::random(seed + i, world(), most));
    }
    run_all(operations, others);
}

TEST_P(InFlight, sixty_four_equal_operations_do_not_interfere) {
    std::vector<Communicator> others;
    for (Communicator& rank : ranks_) others.push_back(rank.duplicate());
    std::vector<MixedCollective> operations;
    for (std::size_t i = 0; i < 64; ++i) {
        operations.emplace_back(Kind::all_reduce, 200 + i, world(), 64);
    }
    run_all(operations, others);
}

TEST_P(InFlight, messages_of_the_same_communicator_do_not_interfere_with_operations) {
    auto operation = MixedCollective(Kind::all_to_all, 300, world(), 3000);
    const auto sent = inputs<float>(Values::distinct, 301, world(), 3000);
    auto got = room<float>(world(), 3000);
    std::vector<Work<Status>> received;
    std::vector<Work<>> works;
    const int size = static_cast<int>(world());
    for (std::size_t rank = 0; rank < world(); ++rank) {
        received.push_back(
            ranks_[rank].recv(std::span(got[rank])));  // from any source, with any tag
        works.push_back(operation.start(ranks_[rank]));
        const int next = (static_cast<int>(rank) + 1) % size;
        works.push_back(ranks_[rank].send(std::span(sent[rank]), next, 5));
    }
    expect_success(works);
    for (std::size_t rank = 0; rank < world(); ++rank) {
        const auto status = outcome(received[rank]);
        ASSERT_TRUE(status) << status.error().what();
        const std::size_t before = (rank + world() - 1) % world();
        EXPECT_EQ(status->source, static_cast<int>(before));
        EXPECT_TRUE(same(rank, got[rank], sent[before]));
        EXPECT_TRUE(operation.right(rank));
    }
}

}  // namespace
}  // namespace nexar::testing

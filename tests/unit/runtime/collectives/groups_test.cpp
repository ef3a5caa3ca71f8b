// Communicators made of some of the ranks of another communicator.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nexar/nexar.hpp>
#include <optional>
#include <vector>

#include "mixed_collective.hpp"
#include "ranks.hpp"

namespace nexar::testing {
namespace {

using Colour = std::optional<std::uint32_t>;
using Made = std::vector<std::optional<Communicator>>;  // by rank in the parent

template <class ColourOf, class KeyOf>
Made split(std::vector<Communicator>& ranks, ColourOf colour, KeyOf key) {
    Made made(ranks.size());
    on_every_rank(ranks, [&](Communicator& c, std::size_t rank) {
        made[rank] = c.split(colour(rank), key(rank));
    });
    return made;
}

Made subgroup(std::vector<Communicator>& ranks, const std::vector<int>& members) {
    Made made;
    for (Communicator& rank : ranks) made.push_back(rank.subgroup(members));
    return made;
}

/// The new communicator's handles of these parent ranks. Checks that its ranks follow this order.
std::vector<Communicator> group(const Made& made, const std::vector<std::size_t>& members) {
    std::vector<Communicator> ranks;
    for (const std::size_t member : members) {
        if (!made[member]) {
            ADD_FAILURE() << "rank " << member << " got no communicator";
            return {};
        }
        EXPECT_EQ(made[member]->rank(), static_cast<int>(ranks.size())) << "rank " << member;
        EXPECT_EQ(made[member]->size(), static_cast<int>(members.size())) << "rank " << member;
        ranks.push_back(*made[member]);
    }
    return ranks;
}

/// Every rank sends a message to the next rank in a ring.
void expect_messages_arrive(std::vector<Communicator>& ranks, std::uint64_t tag) {
    const auto sent = inputs<std::int32_t>(Values::distinct, 110 + tag, ranks.size(), 300);
    auto got = room<std::int32_t>(ranks.size(), 300);
    std::vector<Work<Status>> received;
    std::vector<Work<>> works;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const std::size_t next = (rank + 1) % ranks.size();
        received.push_back(ranks[next].recv(std::span(got[next]), any_source, tag));
        works.push_back(ranks[rank].send(std::span(sent[rank]), static_cast<int>(next), tag));
    }
    expect_success(works);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const std::size_t next = (rank + 1) % ranks.size();
        const auto status = outcome(received[rank]);
        ASSERT_TRUE(status) << status.error().what();
        EXPECT_EQ(status->source, static_cast<int>(rank));
        EXPECT_TRUE(same(next, got[next], sent[rank]));
    }
}

void expect_works(std::vector<Communicator> ranks) {
    ASSERT_FALSE(ranks.empty());
    expect_every_kind_works(ranks, 120);
    expect_messages_arrive(ranks, 1);
}

constexpr auto kNoKey = [](std::size_t) { return std::int64_t{0}; };

TEST(Split, creates_a_communicator_per_colour_in_rank_order) {
    auto ranks = fresh_ranks(7);
    const auto made = split(ranks, [](std::size_t rank) { return Colour(rank % 3); }, kNoKey);
    expect_works(group(made, {0, 3, 6}));
    expect_works(group(made, {1, 4}));
    expect_works(group(made, {2, 5}));
    expect_usable(ranks);
}

TEST(Split, orders_ranks_by_key) {
    auto ranks = fresh_ranks(7);
    const auto made = split(
        ranks, [](std::size_t rank) { return Colour(rank % 2 == 0 ? 4'000'000'000U : 0U); },
        [](std::size_t rank) { return -static_cast<std::int64_t>(rank); });
    expect_works(group(made, {6, 4, 2, 0}));
    expect_works(group(made, {5, 3, 1}));
}

TEST(Split, orders_equal_keys_by_rank) {
    auto ranks = fresh_ranks(5);
    const auto made = split(
        ranks, [](std::size_t) { return Colour(1); },
        [](std::size_t rank) { return rank % 2 == 0 ? INT64_MAX : INT64_MIN; });
    expect_works(group(made, {1, 3, 0, 2, 4}));
}

TEST(Split, returns_nothing_for_a_rank_that_passes_undefined) {
    auto ranks = fresh_ranks(4);
    const auto made = split(
        ranks, [](std::size_t rank) { return rank == 2 ? Colour(Communicator::undefined) : 5; },
        kNoKey);
    EXPECT_FALSE(made[2]);
    expect_works(group(made, {0, 1, 3}));
    const auto none =
        split(ranks, [](std::size_t) { return Colour(Communicator::undefined); }, kNoKey);
    for (const auto& nothing : none) EXPECT_FALSE(nothing);
    expect_usable(ranks);
}

TEST(Split, may_put_every_rank_into_its_own_group) {
    auto ranks = fresh_ranks(3);
    const auto made = split(ranks, [](std::size_t rank) { return Colour(rank); }, kNoKey);
    for (std::size_t rank = 0; rank < 3; ++rank) expect_works(group(made, {rank}));
}

TEST(Split, communicators_can_be_split_again) {
    auto ranks = fresh_ranks(8);
    const auto halves = split(
        ranks, [](std::size_t rank) { return Colour(rank / 4); },
        [](std::size_t rank) { return rank < 4 ? 0 : -static_cast<std::int64_t>(rank); });
    auto low = group(halves, {0, 1, 2, 3});
    auto high = group(halves, {7, 6, 5, 4});
    const auto parity = [](std::size_t rank) { return Colour(rank % 2); };
    const auto low_made = split(low, parity, kNoKey);
    const auto high_made = split(high, parity, kNoKey);
    expect_works(group(low_made, {0, 2}));
    expect_works(group(low_made, {1, 3}));
    expect_works(group(high_made, {0, 2}));
    expect_works(group(high_made, {1, 3}));
    expect_works(low);
    expect_works(high);
    expect_usable(ranks);
}

TEST(Split, does_not_interfere_with_collectives_before_and_after) {
    auto ranks = fresh_ranks(4);
    auto values = inputs<std::int64_t>(Values::distinct, 130, 4, 2000);
    const auto want = folded(ReduceOp::sum, values);
    Made made(4);
    on_every_rank(ranks, [&](Communicator& c, std::size_t rank) {
        auto before = c.all_reduce(std::span(values[rank]), sum);
        made[rank] = c.split(static_cast<std::uint32_t>(rank % 2));
        auto after = c.barrier();
        EXPECT_TRUE(outcome(before).has_value());
        EXPECT_TRUE(outcome(after).has_value());
    });
    expect_everywhere(values, want);
    expect_works(group(made, {1, 3}));
}

TEST(Subgroup, has_the_listed_ranks_in_list_order) {
    auto ranks = fresh_ranks(5);
    const auto made = subgroup(ranks, {4, 1, 2});
    EXPECT_FALSE(made[0]);
    EXPECT_FALSE(made[3]);
    expect_works(group(made, {4, 1, 2}));
}

TEST(Subgroup, created_twice_from_one_list_are_two_communicators) {
    auto ranks = fresh_ranks(3);
    auto first = group(subgroup(ranks, {2, 0}), {2, 0});
    auto second = group(subgroup(ranks, {2, 0}), {2, 0});
    const std::vector<int> one{1};
    const std::vector<int> two{2};
    std::vector<Work<>> works;
    works.push_back(first[0].send(std::span(one), 1, 3));
    works.push_back(second[0].send(std::span(two), 1, 3));
    std::vector<int> got(1);
    EXPECT_TRUE(outcome(second[1].recv(std::span(got), 0, 3)).has_value());
    EXPECT_EQ(got, two);
    EXPECT_TRUE(outcome(first[1].recv(std::span(got), 0, 3)).has_value());
    EXPECT_EQ(got, one);
    expect_success(works);
}

TEST(Subgroup, a_subgroup_of_a_subgroup_and_its_duplicate_work) {
    auto ranks = fresh_ranks(7);
    auto outer = group(subgroup(ranks, {6, 5, 3, 1, 0}), {6, 5, 3, 1, 0});
    auto inner = group(subgroup(outer, {4, 0, 2}), {4, 0, 2});
    expect_works(inner);
    for (Communicator& rank : inner) rank = rank.duplicate();
    expect_works(inner);
}

TEST(Subgroup, rejects_lists_with_unknown_or_repeated_ranks) {
    auto ranks = fresh_ranks(3);
    for (const std::vector<int>& list :
         {std::vector<int>{0, 3}, std::vector<int>{-1}, std::vector<int>{1, 0, 1}}) {
        try {
            ranks[0].subgroup(list);
            ADD_FAILURE() << ::testing::PrintToString(list);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::invalid_argument) << error.what();
        }
    }
    auto pair = group(subgroup(ranks, {1, 0}), {1, 0});
    expect_works(pair);
}

// Equal calls on parent and children, started alternately, all of them before the first wait.
TEST(Groups, parent_and_children_do_not_interfere_while_both_are_busy) {
    constexpr std::size_t kWorld = 4;
    auto ranks = fresh_ranks(kWorld);
    const auto made = split(ranks, [](std::size_t rank) { return Colour(rank % 2); }, kNoKey);
    auto even = group(made, {0, 2});
    auto odd = group(made, {1, 3});
    std::vector<MixedCollective> of_parent;
    std::vector<MixedCollective> of_even;
    std::vector<MixedCollective> of_odd;
    for (std::uint64_t i = 0; i < 24; ++i) {
        const auto kind = static_cast<Kind>(i % kKinds);
        of_parent.emplace_back(kind, 140 + i, kWorld, 900);
        of_even.emplace_back(kind, 170 + i, 2, 900);
        of_odd.emplace_back(kind, 200 + i, 2, 900);
    }
    std::vector<Work<>> works;
    for (std::size_t rank = 0; rank < kWorld; ++rank) {
        auto& child = rank % 2 == 0 ? even[rank / 2] : odd[rank / 2];
        auto& of_child = rank % 2 == 0 ? of_even : of_odd;
        for (std::size_t i = 0; i < of_parent.size(); ++i) {
            works.push_back(of_parent[i].start(ranks[rank]));
            works.push_back(of_child[i].start(child));
        }
    }
    expect_messages_arrive(ranks, 9);
    expect_messages_arrive(even, 9);
    expect_messages_arrive(odd, 9);
    expect_success(works);
    for (std::size_t i = 0; i < of_parent.size(); ++i) {
        for (std::size_t rank = 0; rank < kWorld; ++rank) {
            EXPECT_TRUE(of_parent[i].right(rank)) << i;
        }
        for (std::size_t rank = 0; rank < 2; ++rank) {
            EXPECT_TRUE(of_even[i].right(rank)) << i;
            EXPECT_TRUE(of_odd[i].right(rank)) << i;
        }
    }
}

}  // namespace
}  // namespace nexar::testing

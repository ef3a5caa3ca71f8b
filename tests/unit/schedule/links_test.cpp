#include "schedule/links.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <vector>

namespace nexar::schedule::testing {
namespace {

using Machines = std::vector<std::uint32_t>;

TEST(Links, are_host_links_only_within_a_host) {
    const Links links(Machines{7, 3, 7, 9, 3});
    const Machines hosts{0, 1, 0, 2, 1};
    for (std::uint32_t one = 0; one < hosts.size(); ++one) {
        EXPECT_EQ(links.host(one), hosts[one]);
        for (std::uint32_t other = 0; other < hosts.size(); ++other) {
            EXPECT_EQ(links.between(one, other),
                      hosts[one] == hosts[other] ? LinkKind::host : LinkKind::fabric);
        }
    }
    EXPECT_EQ(links.slowest(), LinkKind::fabric);
}

TEST(Links, are_fabric_links_by_default) {
    const Links links;
    EXPECT_EQ(links.host(5), 5U);
    EXPECT_EQ(links.between(0, 5), LinkKind::fabric);
    EXPECT_EQ(links.slowest(), LinkKind::fabric);
    EXPECT_EQ(links.among(std::array{3U, 1U}).slowest(), LinkKind::fabric);
}

TEST(Links, do_not_depend_on_how_hosts_are_numbered) {
    EXPECT_EQ(Links(Machines{4, 4, 9}), Links(Machines{9, 9, 4}));
    EXPECT_EQ(Links(Machines{4, 4, 9}).hash(), Links(Machines{0, 0, 1}).hash());
    EXPECT_EQ(Links(Machines{2, 0, 1}), Links());
    EXPECT_EQ(Links(Machines{2, 0, 1}).hash(), Links().hash());
}

TEST(Links, that_differ_have_different_hashes) {
    const std::vector<Links> all{Links(),
                                 Links(Machines{0, 0, 0}),
                                 Links(Machines{0, 0, 1}),
                                 Links(Machines{0, 1, 0}),
                                 Links(Machines{0, 1, 1}),
                                 Links(Machines{0, 0, 0, 0}),
                                 Links(Machines{0, 0, 1, 1})};
    std::set<std::uint64_t> hashes;
    for (const Links& links : all) hashes.insert(links.hash());
    EXPECT_EQ(hashes.size(), all.size());
}

TEST(Links, of_a_subset_of_ranks_keep_their_kind) {
    const Links links(Machines{0, 0, 1, 1, 2});
    EXPECT_EQ(links.among(std::array{1U, 0U}).slowest(), LinkKind::host);
    EXPECT_EQ(links.among(std::array{3U, 2U, 1U}), Links(Machines{0, 0, 1}));
    EXPECT_EQ(links.among(std::array{4U, 2U, 0U}), Links());
    EXPECT_EQ(links.among(std::array{4U}), Links());
}

TEST(Links, tell_how_ranks_are_spread_over_hosts) {
    EXPECT_EQ(Links().levels(6), (Levels{.hosts = 6}));
    const Levels one = Links(Machines{0, 0, 0}).levels(3);
    EXPECT_EQ(one.hosts, 1U);
    EXPECT_EQ(one.crossings, 0U);
    EXPECT_FALSE(one.two());

    const Levels blocks = Links(Machines{0, 0, 0, 0, 1, 1, 1, 1}).levels(8);
    EXPECT_EQ(blocks, (Levels{.hosts = 2,
                              .smallest = 4,
                              .largest = 4,
                              .near_rounds = 2,
                              .near_pairs = true,
                              .crossings = 1}));
    EXPECT_TRUE(blocks.two());

    const Levels in_turn = Links(Machines{0, 1, 0, 1, 0}).levels(5);
    EXPECT_EQ(in_turn.smallest, 2U);
    EXPECT_EQ(in_turn.largest, 3U);
    EXPECT_EQ(in_turn.crossings, 2U);  // the last rank and the first are on one host
    EXPECT_EQ(in_turn.near_rounds, 0U);
    EXPECT_FALSE(in_turn.near_pairs);
    EXPECT_FALSE(in_turn.consecutive);
    EXPECT_FALSE(in_turn.canonical);
}

TEST(Links, know_whether_folding_host_by_host_follows_the_canonical_tree) {
    const auto canonical = [](const Machines& machines) {
        return Links(machines).levels(static_cast<std::uint32_t>(machines.size())).canonical;
    };
    EXPECT_TRUE(canonical({0, 0, 1, 1, 2, 2, 3, 3}));
    EXPECT_TRUE(canonical({0, 0, 0, 0, 1, 1, 1, 1}));
    EXPECT_TRUE(canonical({0, 0, 1, 1, 2, 3}));  // ((0 1)(2 3))(4 5)
    EXPECT_TRUE(canonical({0, 0, 1, 1, 2, 2}));
    EXPECT_FALSE(canonical({0, 0, 1, 2, 3, 3}));
    EXPECT_FALSE(canonical({0, 0, 0, 1, 1, 1}));
    EXPECT_FALSE(canonical({0, 1, 1, 0}));
}

}  // namespace
}  // namespace nexar::schedule::testing

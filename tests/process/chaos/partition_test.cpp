// Cuts between hosts, and seeds and ranks that are killed: never do two parts of a cluster both
// continue.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nexar/error.hpp>

#include "process/chaos/cluster.hpp"
#include "support/network_namespace.hpp"

namespace nexar::chaos {
namespace {

constexpr std::chrono::seconds kSoon{10};
/// Long enough for a wrong decision: more than two failure budgets.
constexpr std::chrono::milliseconds kWhile{1200};

/// Host 0 is that of the seed, host i + 1 that of the i-th rank.
class Partition : public ::testing::Test {
protected:
    void form(int ranks) {
        if (!testing::has_ip_command()) GTEST_SKIP() << "no ip command; install iproute2";
        try {
            networks_ = std::make_unique<Networks>(ranks + 1);
        } catch (const Error& error) {
            if (error.code() != Errc::unsupported) throw;
            GTEST_SKIP() << "no namespaces for this user; run as root (" << error.what() << ")";
        }
        cluster_ = std::make_unique<Cluster>(
            ClusterOptions{.ranks = ranks, .link = "quic", .networks = networks_.get()});
        ranks_ = cluster_->living();
    }

    void cut(const Cluster::Ranks& off, bool with_seed = false) {
        std::vector<int> hosts;
        for (const Process* one : off) hosts.push_back(one->host);
        if (with_seed) hosts.push_back(0);
        networks_->cut(hosts);
    }

    Cluster::Ranks some(std::size_t from, std::size_t to) const {
        return {ranks_.begin() + static_cast<std::ptrdiff_t>(from),
                ranks_.begin() + static_cast<std::ptrdiff_t>(to)};
    }

    void expect_continue(const Cluster::Ranks& ranks) {
        EXPECT_EQ(cluster_->await_world(ranks, kSoon), "");
        for (const Process* one : ranks) EXPECT_FALSE(one->minority) << one->rank;
    }

    void expect_minority(const Cluster::Ranks& ranks) {
        const auto parked = [&] {
            return std::ranges::all_of(ranks, [](auto* one) { return one->minority; });
        };
        EXPECT_TRUE(cluster_->await(parked, kSoon)) << cluster_->describe();
    }

    /// None of them enters another world for a while.
    void expect_parked(const Cluster::Ranks& ranks) {
        std::vector<std::int64_t> before;
        for (const Process* one : ranks) before.push_back(one->world_number);
        const auto moved = [&] {
            for (std::size_t i = 0; i < ranks.size(); ++i) {
                if (ranks[i]->world_number != before[i] || ranks[i]->ended) return true;
            }
            return false;
        };
        EXPECT_FALSE(cluster_->await(moved, kWhile)) << cluster_->describe();
    }

    void expect_evicted(const Cluster::Ranks& ranks) {
        for (Process* one : ranks) EXPECT_EQ(cluster_->await_evicted(*one, kSoon), "");
    }

    void TearDown() override {
        if (!cluster_) return;
        const auto found = cluster_->finish();
        fmt::print("{}\n", chaos_checker::describe(found));
        EXPECT_TRUE(found.wrong.empty()) << chaos_checker::describe(found);
    }

    std::unique_ptr<Networks> networks_{};
    std::unique_ptr<Cluster> cluster_{};
    Cluster::Ranks ranks_{};
};

TEST_F(Partition, three_of_five_continue_and_two_are_a_minority) {
    form(5);
    if (IsSkipped()) return;
    cut(some(3, 5));
    expect_continue(some(0, 3));
    expect_minority(some(3, 5));
    expect_parked(some(3, 5));
    networks_->heal();
    expect_evicted(some(3, 5));
    expect_continue(some(0, 3));
}

TEST_F(Partition, one_of_two_continues_with_the_seed) {
    for (const std::size_t victim : {0U, 1U}) {
        form(2);
        if (IsSkipped()) return;
        cluster_->kill(*ranks_[victim]);
        expect_continue({ranks_[1 - victim]});
        EXPECT_EQ(cluster_->grow_to(2, kSoon), "");
        TearDown();
        cluster_.reset();
    }
}

TEST_F(Partition, last_of_two_parks_until_the_seed_is_back) {
    form(2);
    if (IsSkipped()) return;
    cluster_->kill_seed();
    cluster_->kill(*ranks_[0]);
    expect_minority({ranks_[1]});
    expect_parked({ranks_[1]});
    cluster_->start_seed();
    EXPECT_EQ(cluster_->await_world({ranks_[1]}, kSoon), "");
    EXPECT_EQ(cluster_->grow_to(2, kSoon), "");
}

TEST_F(Partition, two_of_three_continue_without_a_seed) {
    form(3);
    if (IsSkipped()) return;
    cluster_->kill_seed();
    cluster_->kill(*ranks_[1]);
    expect_continue({ranks_[0], ranks_[2]});
}

TEST_F(Partition, half_of_four_with_the_seed_continues) {
    form(4);
    if (IsSkipped()) return;
    cut(some(2, 4));
    expect_continue(some(0, 2));
    expect_minority(some(2, 4));
    expect_parked(some(2, 4));
    networks_->heal();
    expect_evicted(some(2, 4));
    expect_continue(some(0, 2));
    EXPECT_EQ(cluster_->grow_to(4, kSoon), "");
}

TEST_F(Partition, cut_shorter_than_the_budget_evicts_nobody) {
    form(3);
    if (IsSkipped()) return;
    const auto moved = [&] {
        return std::ranges::any_of(ranks_,
                                   [](auto* one) { return one->world_number != 1 || one->ended; });
    };
    cut(some(2, 3));
    EXPECT_FALSE(cluster_->await(moved, std::chrono::milliseconds(200))) << cluster_->describe();
    networks_->heal();
    EXPECT_FALSE(cluster_->await(moved, kWhile)) << cluster_->describe();
}

}  // namespace
}  // namespace nexar::chaos

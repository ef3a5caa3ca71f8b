#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nexar/error.hpp>
#include <vector>

#include "process/chaos/cluster.hpp"
#include "support/network_namespace.hpp"

namespace nexar::chaos {

inline constexpr std::chrono::seconds kSoon{10};
/// Long enough for a wrong decision: more than two failure budgets.
inline constexpr std::chrono::milliseconds kWhile{1200};

/// Host 0 is that of the seed, host i + 1 that of the i-th rank; a second seed has the last host.
class Partition : public ::testing::Test {
protected:
    void form(int ranks, ClusterOptions options = {}) {
        if (!testing::has_ip_command()) GTEST_SKIP() << "no ip command; install iproute2";
        try {
            networks_ = std::make_unique<Networks>(ranks + (options.second_seed ? 2 : 1));
        } catch (const Error& error) {
            if (error.code() != Errc::unsupported) throw;
            GTEST_SKIP() << "no namespaces for this user; run as root (" << error.what() << ")";
        }
        options.ranks = ranks;
        options.link = "quic";
        options.networks = networks_.get();
        cluster_ = std::make_unique<Cluster>(options);
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

    /// Of four ranks, the first two continue and the others wait. When the cut ends, the others are
    /// evicted, and new processes take their places.
    void expect_first_half_continues() {
        expect_continue(some(0, 2));
        expect_minority(some(2, 4));
        expect_parked(some(2, 4));
        networks_->heal();
        expect_evicted(some(2, 4));
        expect_continue(some(0, 2));
        EXPECT_EQ(cluster_->grow_to(4, kSoon), "");
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

}  // namespace nexar::chaos

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/random.hpp"
#include "base/view.hpp"
#include "cluster.hpp"

namespace nexar::testing {

inline Rank rank_at(std::size_t i) {
    return Rank(static_cast<std::uint32_t>(i));
}

/// Engines with views, some of which fail. The owner of each operation must be a
/// std::function<void()> that is called when it has ended.
class AgreeingCluster {
public:
    AgreeingCluster(std::uint64_t seed, std::size_t nodes)
        : random(seed), cluster(seed, nodes), gone_(nodes) {
        for (std::size_t i = 0; i < nodes; ++i) {
            cluster.node(i).on_done = [](engine::Operation& done) {
                (*static_cast<std::function<void()>*>(done.owner))();
            };
        }
    }
    ~AgreeingCluster() {
        // Killed nodes must see that their links are down.
        for (std::size_t i = 0; i < cluster.size(); ++i) {
            if (gone_[i]) cluster.world().pause(cluster.node(i), cluster.world().now());
        }
        cluster.close();
    }
    AgreeingCluster(const AgreeingCluster&) = delete;
    AgreeingCluster& operator=(const AgreeingCluster&) = delete;

    bool runs(std::size_t node) const { return !gone_[node]; }
    std::vector<std::size_t> running() const {
        std::vector<std::size_t> nodes;
        for (std::size_t i = 0; i < gone_.size(); ++i) {
            if (runs(i)) nodes.push_back(i);
        }
        return nodes;
    }

    /// The next view, of the nodes that run.
    void decide_view() {
        View& view = views.emplace_back();
        view.epoch = Epoch(views.size());
        for (const std::size_t i : running()) {
            view.members.push_back({.node = cluster.member(i), .rank = rank_at(i)});
        }
    }
    void learn_view(std::size_t node) {
        cluster.node(node).engine().set_view(views.back());
        cluster.node(node).settle();
    }
    /// Every node learns the view at a random time.
    void learn_view_later() {
        for (const std::size_t i : running()) {
            cluster.world().after(Duration(random.below(30'000'000)), [this, i] {
                if (runs(i)) learn_view(i);
            });
        }
    }

    void kill(std::size_t node) {
        gone_[node] = true;
        cluster.world().pause(cluster.node(node), cluster.world().now() + std::chrono::hours(10));
        const std::vector<port::Link*> links = cluster.node(node).links();
        for (const port::Link* link : links) {
            cluster.fabric().break_link(cluster.carrier(node), link->id(),
                                        std::chrono::milliseconds(5));
        }
    }

    template <class Condition>
    bool run_until(Condition condition) {
        return cluster.world().run_until(condition, std::chrono::minutes(5));
    }

    Random random;
    SimCluster cluster;
    std::vector<View> views{};

private:
    std::vector<bool> gone_;
};

}  // namespace nexar::testing

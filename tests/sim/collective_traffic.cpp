#include "collective_traffic.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "schedule/algorithm.hpp"
#include "schedule/registry.hpp"

namespace nexar::testing {

CollectiveTraffic::CollectiveTraffic(EngineCluster& cluster, std::uint64_t seed)
    : cluster_(&cluster), random_(seed), next_(cluster.size()) {
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        cluster.node(i).on_done = [this](engine::Operation& done) { on_done(done); };
    }
}

void CollectiveTraffic::set_profile(const schedule::Profile& profile) {
    for (std::size_t i = 0; i < cluster_->size(); ++i) {
        cluster_->context(i, 0).collectives.set_profile(profile);
    }
}

std::size_t CollectiveTraffic::add(const CallTerms& terms) {
    const std::size_t call = calls_.size();
    calls_.push_back(make_call(terms, cluster_->size()));
    for (std::size_t rank = 0; rank < cluster_->size(); ++rank) {
        auto& one = *started_.emplace_back(std::make_unique<Started>());
        one.owner = this;
        one.call = call;
        one.rank = rank;
    }
    return call;
}

CollectiveTraffic::Started& CollectiveTraffic::prepare_next(std::size_t rank) {
    Started& one = at(next_[rank]++, rank);
    if (spare_.empty()) {
        one.operation = std::make_unique<engine::CollectiveOperation>();
    } else {
        const std::size_t which = random_.below(spare_.size());
        one.operation = std::exchange(spare_[which], std::move(spare_.back()));
        spare_.pop_back();
    }
    one.operation->owner = &one;
    calls_[one.call]->fill(static_cast<std::uint32_t>(rank), *one.operation);
    one.started = true;
    ++pending_;
    return one;
}

void CollectiveTraffic::start_next(std::size_t rank) {
    Started& one = prepare_next(rank);
    EngineNode& node = cluster_->node(rank);
    node.engine().advance(cluster_->world().now());
    node.engine().start(cluster_->context(rank, 0), *one.operation);
    node.settle();
}

void CollectiveTraffic::start_and_reserve(std::size_t rank) {
    Started& counts = prepare_next(rank);
    Started& later = prepare_next(rank);
    EngineNode& node = cluster_->node(rank);
    node.engine().advance(cluster_->world().now());
    node.engine().start(cluster_->context(rank, 0), *counts.operation, *later.operation);
    node.settle();
}

void CollectiveTraffic::begin(std::size_t call, std::size_t rank) {
    EngineNode& node = cluster_->node(rank);
    node.engine().advance(cluster_->world().now());
    node.engine().begin(*at(call, rank).operation);
    node.settle();
}

void CollectiveTraffic::start_all() {
    start_all_except(cluster_->size());
}

void CollectiveTraffic::start_all_except(std::size_t out) {
    std::vector<std::size_t> left;
    for (std::size_t rank = 0; rank < cluster_->size(); ++rank) {
        if (rank != out) left.push_back(rank);
    }
    while (true) {
        std::erase_if(left, [&](std::size_t rank) { return next_[rank] == calls_.size(); });
        if (left.empty()) return;
        start_next(left[random_.below(left.size())]);
        if (random_.chance(0.2)) cluster_->world().run_for(Duration(random_.below(4'000'000)));
    }
}

void CollectiveTraffic::cancel(std::size_t call, std::size_t rank) {
    Started& one = at(call, rank);
    if (!one.started || one.ended) return;
    EngineNode& node = cluster_->node(rank);
    node.engine().advance(cluster_->world().now());
    // It may have ended just now, and its operation may be in use again.
    node.settle();
    if (one.ended) return;
    node.engine().cancel(*one.operation);
    node.settle();
}

void CollectiveTraffic::on_done(engine::Operation& done) {
    Started& one = *static_cast<Started*>(done.owner);
    SCOPED_TRACE(text(one));
    EXPECT_FALSE(std::exchange(one.ended, true)) << "it ended twice";
    --pending_;
    one.error = done.error;
    CollectiveCall& call = *calls_[one.call];
    const auto rank = static_cast<std::uint32_t>(one.rank);
    if (!one.error) call.expect_result(rank);
    call.overwrite(rank);
    spare_.push_back(std::move(one.operation));
}

void CollectiveTraffic::poll_memory() {
    for (bool any = true; any;) {
        any = false;
        for (std::size_t rank = 0; rank < cluster_->size(); ++rank) {
            EngineNode& node = cluster_->node(rank);
            if (!node.engine().poll_memory()) continue;
            any = true;
            node.settle();
        }
    }
}

bool CollectiveTraffic::run(Duration at_most) {
    const auto ended = [&] {
        poll_memory();
        return pending_ == 0;
    };
    if (cluster_->world().run_until(ended, at_most)) return true;
    for (const auto& one : started_) {
        if (one->started && !one->ended) ADD_FAILURE() << text(*one) << " did not end";
    }
    return false;
}

void CollectiveTraffic::expect_untouched_and_forget() {
    cluster_->world().run_for(std::chrono::seconds(1));
    for (const auto& one : started_) {
        SCOPED_TRACE(text(*one));
        if (one->ended) calls_[one->call]->expect_untouched(static_cast<std::uint32_t>(one->rank));
    }
    calls_.clear();
    started_.clear();
    std::ranges::fill(next_, std::size_t{0});
}

const std::optional<Error>& CollectiveTraffic::error(std::size_t call, std::size_t rank) const {
    EXPECT_TRUE(at(call, rank).ended) << text(at(call, rank));
    return at(call, rank).error;
}

void CollectiveTraffic::expect_success() const {
    for (const auto& one : started_) {
        EXPECT_TRUE(one->ended) << text(*one);
        if (one->error) ADD_FAILURE() << text(*one) << ": " << one->error->what();
    }
}

std::string CollectiveTraffic::text(const Started& one) const {
    const CallTerms& terms = calls_[one.call]->terms();
    const schedule::Profile& profile = cluster_->context(0, 0).collectives.profile;
    return fmt::format("call {} at rank {} of {}: {}{} {} x {}{}, root {}, forced {}, segment {}",
                       one.call, one.rank, cluster_->size(), schedule::name(terms.what),
                       terms.uneven ? "_v" : "", terms.floats ? "f32" : "i32", terms.count,
                       terms.in_place ? " in place" : "", terms.root,
                       profile.forced_for(terms.what, terms.count * 4), profile.segment_bytes);
}

ForcedRounds::ForcedRounds(std::size_t world, const schedule::Links& links) {
    std::map<schedule::Collective, std::size_t> seen;
    for (const schedule::Algorithm& algorithm : schedule::algorithms()) {
        const schedule::Profile profile{.links = links, .forced = std::string(algorithm.name)};
        const schedule::Workload workload{.operation = algorithm.operation,
                                          .world = static_cast<std::uint32_t>(world)};
        if (!schedule::choose(workload, profile)) continue;
        const std::size_t round = seen[algorithm.operation]++;
        if (round == rounds_.size()) rounds_.emplace_back();
        rounds_[round].push_back(&algorithm);
    }
}

std::string ForcedRounds::forced(std::size_t round) const {
    std::string list;
    for (const schedule::Algorithm* algorithm : rounds_[round]) {
        list += fmt::format("{}{}={}", list.empty() ? "" : ",",
                            schedule::name(algorithm->operation), algorithm->name);
    }
    return list;
}

schedule::Links random_hosts(Random& random, std::size_t world) {
    std::vector<std::uint32_t> machines(world);
    for (std::uint32_t& machine : machines) machine = static_cast<std::uint32_t>(random.below(4));
    if (random.chance(0.5)) std::ranges::sort(machines);
    return schedule::Links(machines);
}

CallTerms random_call(Random& random, const std::vector<const schedule::Algorithm*>& algorithms,
                      std::size_t world, std::size_t largest_count) {
    const schedule::Algorithm& algorithm = *algorithms[random.below(algorithms.size())];
    const bool small = random.chance(0.6);
    return {.what = algorithm.operation,
            .count = random.below((small ? 50 : largest_count) + 1),
            .in_place = random.chance(0.5),
            .uneven = algorithm.traits.takes_counts && random.chance(0.4),
            .floats = random.chance(0.5),
            .root = static_cast<std::uint32_t>(random.below(world)),
            .seed = random.next()};
}

}  // namespace nexar::testing

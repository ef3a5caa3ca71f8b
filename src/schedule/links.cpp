#include "schedule/links.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/assert.hpp"
#include "base/mix.hpp"
#include "schedule/fold_tree.hpp"

namespace nexar::schedule {

namespace {

using Hashes = std::vector<std::uint64_t>;

/// A hash of the fold of these operands along the canonical tree.
std::uint64_t folded(const Hashes& operands) {
    const auto join = [](std::uint64_t left, std::uint64_t right) {
        return mixed(mixed(left) + 3 * right);
    };
    const FoldTree tree(static_cast<std::uint32_t>(operands.size()));
    Hashes level;
    for (std::uint32_t group = 0; group < tree.groups(); ++group) {
        const std::uint64_t first = operands[tree.leader(group)];
        level.push_back(tree.is_pair(group) ? join(first, operands[tree.leader(group) + 1])
                                            : first);
    }
    while (level.size() > 1) {
        for (std::size_t i = 0; i < level.size() / 2; ++i)
            level[i] = join(level[2 * i], level[2 * i + 1]);
        level.resize(level.size() / 2);
    }
    return level.front();
}

/// hosts[rank], numbered from 0 in the order of ranks.
Levels levels_of(const std::vector<std::uint32_t>& hosts) {
    const auto world = static_cast<std::uint32_t>(hosts.size());
    Levels levels{.hosts = *std::ranges::max_element(hosts) + 1};
    std::vector<std::uint32_t> sizes(levels.hosts);
    std::vector<std::uint32_t> crossings(levels.hosts);
    std::vector<Hashes> of_hosts(levels.hosts);
    Hashes all;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        ++sizes[hosts[rank]];
        if (hosts[rank] != hosts[(rank + 1) % world]) ++crossings[hosts[rank]];
        all.push_back(mixed(rank));
        of_hosts[hosts[rank]].push_back(all.back());
    }
    levels.smallest = *std::ranges::min_element(sizes);
    levels.largest = *std::ranges::max_element(sizes);
    levels.crossings = *std::ranges::max_element(crossings);
    levels.consecutive = std::ranges::is_sorted(hosts);
    Hashes folds;
    for (const Hashes& one : of_hosts) folds.push_back(folded(one));
    levels.canonical = levels.consecutive && folded(folds) == folded(all);
    const FoldTree tree(world);
    const auto near = [&](std::uint32_t one, std::uint32_t other) {
        return hosts[one] == hosts[other];
    };
    levels.near_pairs = true;
    for (std::uint32_t pair = 0; pair < tree.pairs(); ++pair)
        levels.near_pairs = levels.near_pairs && near(2 * pair, 2 * pair + 1);
    for (bool all_near = levels.near_pairs; levels.near_rounds < tree.rounds();
         ++levels.near_rounds) {
        for (std::uint32_t group = 0; all_near && group < tree.groups(); ++group)
            all_near = near(tree.leader(group), tree.leader(group ^ (1U << levels.near_rounds)));
        if (!all_near) break;
    }
    return levels;
}

}  // namespace

Links::Links(std::span<const std::uint32_t> machines) {
    // Renumber, so that equal links are equal values.
    std::map<std::uint32_t, std::uint32_t> numbers;
    for (const std::uint32_t machine : machines) {
        const auto next = static_cast<std::uint32_t>(numbers.size());
        hosts_.push_back(numbers.try_emplace(machine, next).first->second);
    }
    if (numbers.size() == hosts_.size()) hosts_.clear();
    if (hosts_.empty()) return;
    if (numbers.size() == 1) slowest_ = LinkKind::host;
    levels_ = levels_of(hosts_);
}

Levels Links::levels(std::uint32_t world) const noexcept {
    if (hosts_.empty()) return {.hosts = world};
    NEXAR_ASSERT(hosts_.size() == world);
    return levels_;
}

Links Links::among(std::span<const std::uint32_t> ranks) const {
    std::vector<std::uint32_t> machines;
    machines.reserve(ranks.size());
    for (const std::uint32_t rank : ranks) machines.push_back(host(rank));
    return Links(machines);
}

std::uint64_t Links::hash() const noexcept {
    std::uint64_t all = hosts_.size();
    for (const std::uint32_t host : hosts_) all = mixed(all ^ host);
    return all;
}

}  // namespace nexar::schedule

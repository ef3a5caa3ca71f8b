#include "schedule/choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <tuple>
#include <utility>

#include "base/mix.hpp"
#include "base/quantity.hpp"
#include "schedule/registry.hpp"

namespace nexar::schedule {

namespace {

constexpr std::uint64_t kLeastSegment = std::uint64_t{16} << 10U;
constexpr std::uint64_t kMostSegment = std::uint64_t{8} << 20U;

// In larger worlds the messages of rank 0 in a flat barrier take longer than more rounds.
constexpr std::uint32_t kMostInFlatBarrier = 4;
static_assert(kMostInFlatBarrier == 4, "objection() names the number");

bool scans(Collective operation) {
    return operation == Collective::scan || operation == Collective::exclusive_scan;
}

/// Removes and returns the first entry of a comma-separated list.
std::string_view next_entry(std::string_view& list) noexcept {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view entry = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    return entry;
}

/// One entry of Profile::forced, split into its parts.
struct Forced {
    std::string_view operation{};
    std::string_view algorithm{};
    std::optional<std::string_view> at_most{};  // bytes
};

Forced parts_of(std::string_view entry) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    Forced parts{.operation = entry.substr(0, equals),
                 .algorithm = entry.substr(std::min(equals + 1, entry.size()))};
    const std::size_t colon = parts.algorithm.find(':');
    if (colon == std::string_view::npos) return parts;
    parts.at_most = parts.algorithm.substr(colon + 1);
    parts.algorithm = parts.algorithm.substr(0, colon);
    return parts;
}

Extent extent_of(const Workload& workload, std::uint64_t segment_bytes,
                 const Levels& levels = {.hosts = 0}, const Stretches* stretches = nullptr) {
    const auto bytes = [&](std::uint64_t elements) {
        return static_cast<double>(elements) * workload.element_bytes;
    };
    return {.world = workload.world,
            .bytes = bytes(workload.count),
            .chunk = bytes(workload.largest),
            .segment = static_cast<double>(segment_bytes),
            .levels = levels,
            .stretches = stretches};
}

/// Why the algorithm cannot run this workload, as a clause about the algorithm; empty if it can.
std::string_view objection(const Algorithm& algorithm, const Workload& workload,
                           const Profile& profile) {
    const Levels levels = profile.links.levels(workload.world);
    const Traits traits = traits_for(algorithm, levels);
    const bool in_memory = traits.medium == Medium::memory;
    if (in_memory && !profile.memory.shared()) {
        return "it runs in memory that all ranks share, and these ranks share none";
    }
    if (in_memory && workload.begins_late) {
        return "operations in memory run in the order of calls, and this one begins after an "
               "exchange of counts";
    }
    if (traits.two_level && !levels.two()) {
        return levels.hosts == 1 ? "it has a phase between hosts, and all ranks are on one host"
                                 : "it has a phase within hosts, and every rank has its own host";
    }
    if (traits.needs_tree && profile.hops.none()) {
        return "it forwards data along a given tree of links and is meant for sparse topologies, "
               "but this cluster is fully connected (every rank has a link to every other) and has "
               "no such tree";
    }
    if (workload.has_counts && !traits.takes_counts) return "it needs chunks of equal size";
    if (in_memory && !memory_segment(traits, extent_of(workload, 0), workload.element_bytes,
                                     profile.memory, profile.segment_bytes)
                          .fits) {
        return "the shared memory is too small for this vector and this many ranks";
    }
    const bool plain = !in_memory && !traits.two_level && !traits.needs_tree;
    if (workload.operation == Collective::barrier && plain) {
        const bool flat = algorithm.name == "flat";
        if (flat == (workload.world <= kMostInFlatBarrier)) return {};
        return flat ? "it is for worlds of at most 4 ranks" : "it is for worlds of 5 or more ranks";
    }
    if (!reduces(workload.operation)) return {};
    if (!workload.commutative && !traits.keeps_order)
        return traits.two_level
                   ? "it folds the ranks of each host first, which are not consecutive, and the "
                     "operator is not commutative"
                   : "it reorders operands, and the operator is not commutative";
    if (profile.reproducibility != Reproducibility::runs) return {};
    // The prefixes of a scan have no common fold tree; using one algorithm for every size gives the
    // same guarantee.
    const bool repeats =
        scans(workload.operation) ? algorithm.name == "recursive_doubling" : traits.canonical;
    return repeats ? ""
                   : "its results differ from those of other algorithms in the last bits, "
                     "which reproducibility=runs rules out";
}

Choice with_best_segment(const Algorithm& algorithm, const Workload& workload,
                         const Profile& profile) {
    const Levels levels = profile.links.levels(workload.world);
    const auto with = [&](std::uint64_t bytes) {
        const std::uint64_t elements = bytes / workload.element_bytes;
        const Extent extent = extent_of(workload, elements * workload.element_bytes, levels,
                                        profile.hops.stretches());
        return Choice{.algorithm = &algorithm,
                      .segment = elements,
                      .seconds = predicted_seconds(algorithm, extent, profile.slowest_rates(),
                                                   profile.host_rates)};
    };
    if (algorithm.traits.medium == Medium::memory) {
        const std::uint64_t elements =
            memory_segment(algorithm.traits, extent_of(workload, 0), workload.element_bytes,
                           profile.memory, profile.segment_bytes)
                .segment;
        const Extent extent = extent_of(workload, elements * workload.element_bytes);
        return {.algorithm = &algorithm,
                .segment = elements,
                .seconds = memory_seconds(algorithm, extent, profile.memory)};
    }
    Choice best = with(0);
    if (!algorithm.traits.segments) return best;
    if (profile.segment_bytes != 0) {
        return with(std::max<std::uint64_t>(profile.segment_bytes, workload.element_bytes));
    }
    for (std::uint64_t bytes = kLeastSegment; bytes <= kMostSegment; bytes *= 2) {
        const Choice next = with(bytes);
        if (next.seconds < best.seconds) best = next;
    }
    return best;
}

}  // namespace

std::uint64_t Profile::hash() const noexcept {
    std::uint64_t all = mixed(links.hash() ^ static_cast<std::uint64_t>(reproducibility));
    if (!hops.none()) all = mixed(all ^ hops.hash());
    for (const Rates& one : {rates, host_rates}) {
        for (const double rate :
             {one.latency, one.per_message, one.per_byte, one.both_byte, one.reduce_byte,
              one.copy_byte, one.fill_bytes, one.ranks_per_core, one.shared_byte}) {
            all = mixed(all ^ std::bit_cast<std::uint64_t>(rate));
        }
    }
    for (const std::uint64_t bytes : {memory.slot_bytes, memory.buffer_bytes}) {
        all = mixed(all ^ bytes);
    }
    for (const double rate : {memory.latency, memory.per_peer, memory.put_byte, memory.read_byte}) {
        all = mixed(all ^ std::bit_cast<std::uint64_t>(rate));
    }
    for (const char letter : forced) all = mixed(all ^ static_cast<unsigned char>(letter));
    all = mixed(all ^ segment_bytes);
    return mixed(all ^ eager_bytes);
}

std::vector<Choice> ranked(const Workload& workload, const Profile& profile) {
    std::vector<Choice> all;
    for (const Algorithm& algorithm : algorithms()) {
        if (algorithm.operation == workload.operation &&
            objection(algorithm, workload, profile).empty())
            all.push_back(with_best_segment(algorithm, workload, profile));
    }
    // Where ranks share memory, a link between them copies every byte twice through a ring, so an
    // algorithm over links is never faster. The two models are too far apart to show that.
    // Algorithms with equal times stay in the order of the table.
    std::ranges::sort(all, {}, [](const Choice& choice) {
        return std::tuple(choice.algorithm->traits.medium != Medium::memory, choice.seconds,
                          choice.algorithm - algorithms().data());
    });
    return all;
}

std::string_view Profile::forced_for(Collective operation, std::uint64_t bytes) const {
    if (forced.find('=') == std::string::npos) return forced;
    std::string_view rest = forced;
    while (!rest.empty()) {
        const Forced entry = parts_of(next_entry(rest));
        if (entry.operation != name(operation)) continue;
        if (!entry.at_most) return entry.algorithm;
        const auto at_most = parse_size(*entry.at_most);
        if (at_most && bytes <= *at_most) return entry.algorithm;
    }
    return {};
}

Result<void> check_forced(std::string_view forced) {
    while (!forced.empty()) {
        const std::string_view entry = next_entry(forced);
        const Forced parts = parts_of(entry);
        const auto operation = std::ranges::find(kCollectives, parts.operation,
                                                 [](Collective one) { return name(one); });
        const bool known = operation != kCollectives.end() &&
                           find_algorithm(*operation, parts.algorithm) != nullptr;
        if (known && (!parts.at_most || parse_size(*parts.at_most))) continue;
        return Error(
            Errc::bad_config,
            fmt::format("\"{}\" does not name an operation and one of its algorithms; write a list "
                        "such as all_reduce=tree:64KiB,all_reduce=ring,broadcast=chain, "
                        "where an optional size is the largest vector that an entry "
                        "applies to (nexar explain OPERATION --all lists algorithms)",
                        entry));
    }
    return {};
}

Result<Choice> choose(const Workload& workload, const Profile& profile) {
    const std::vector<Choice> all = ranked(workload, profile);
    std::vector<std::string_view> names;
    names.reserve(all.size());
    for (const Choice& choice : all) names.push_back(choice.algorithm->name);
    const std::string_view forced = profile.forced_for(workload.operation, workload.bytes());
    if (forced.empty() && !all.empty()) return all.front();
    const auto found = std::ranges::find(names, forced);
    if (found != names.end()) return all[static_cast<std::size_t>(found - names.begin())];
    const Algorithm* const known = find_algorithm(workload.operation, forced);
    const std::string problem =
        known == nullptr
            ? fmt::format("{} has no algorithm \"{}\"", name(workload.operation), forced)
            : fmt::format("{}={} cannot be used here: {}", name(workload.operation), forced,
                          objection(*known, workload, profile));
    return Error(Errc::bad_config,
                 fmt::format("{}; choose one of: {}", problem, fmt::join(names, ", ")));
}

}  // namespace nexar::schedule

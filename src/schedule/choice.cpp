#include "schedule/choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/mix.hpp"
#include "schedule/registry.hpp"

namespace nexar::schedule {

namespace {

constexpr std::uint64_t kLeastSegment = std::uint64_t{16} << 10U;
constexpr std::uint64_t kMostSegment = std::uint64_t{8} << 20U;

// With more ranks than this, rank 0 of a flat barrier has more messages than rounds would cost.
constexpr std::uint32_t kMostInFlatBarrier = 4;

bool scans(Operation operation) {
    return operation == Operation::scan || operation == Operation::exclusive_scan;
}

/// Takes the first entry off a list with commas.
std::string_view next_entry(std::string_view& list) noexcept {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view entry = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    return entry;
}

bool may_be_taken(const Algorithm& algorithm, const Task& task, const Profile& profile) {
    const Traits& traits = algorithm.traits;
    if (algorithm.operation != task.operation || traits.needs_tree) return false;
    if (task.has_counts && !traits.takes_counts) return false;
    if (task.operation == Operation::barrier) {
        return (algorithm.name == "flat") == (task.world <= kMostInFlatBarrier);
    }
    if (!reduces(task.operation)) return true;
    if (!task.commutative && !traits.keeps_order) return false;
    // The prefixes of a scan have no common tree: one algorithm for all sizes serves the same end.
    if (profile.reproducibility == Reproducibility::runs && scans(task.operation))
        return algorithm.name == "recursive_doubling";
    return profile.reproducibility != Reproducibility::runs || traits.canonical;
}

Extent extent_of(const Task& task, std::uint64_t segment_bytes) {
    const auto bytes = [&](std::uint64_t elements) {
        return static_cast<double>(elements) * task.element_bytes;
    };
    return {.world = task.world,
            .bytes = bytes(task.count),
            .chunk = bytes(task.largest),
            .segment = static_cast<double>(segment_bytes)};
}

Choice with_best_segment(const Algorithm& algorithm, const Task& task, const Profile& profile) {
    const auto with = [&](std::uint64_t bytes) {
        const std::uint64_t elements = bytes / task.element_bytes;
        return Choice{
            .algorithm = &algorithm,
            .segment = elements,
            .seconds = predicted_seconds(algorithm, extent_of(task, elements * task.element_bytes),
                                         profile.rates)};
    };
    Choice best = with(0);
    if (!algorithm.traits.segments) return best;
    if (profile.segment_bytes != 0) {
        return with(std::max<std::uint64_t>(profile.segment_bytes, task.element_bytes));
    }
    for (std::uint64_t bytes = kLeastSegment; bytes <= kMostSegment; bytes *= 2) {
        const Choice next = with(bytes);
        if (next.seconds < best.seconds) best = next;
    }
    return best;
}

}  // namespace

std::uint64_t Profile::hash() const noexcept {
    auto all = static_cast<std::uint64_t>(reproducibility);
    for (const double rate :
         {rates.latency, rates.per_message, rates.per_byte, rates.both_byte, rates.reduce_byte,
          rates.copy_byte, rates.fill_bytes, rates.ranks_per_core}) {
        all = mixed(all ^ std::bit_cast<std::uint64_t>(rate));
    }
    for (const char letter : forced) all = mixed(all ^ static_cast<unsigned char>(letter));
    return mixed(all ^ segment_bytes);
}

std::vector<Choice> ranked(const Task& task, const Profile& profile) {
    std::vector<Choice> all;
    for (const Algorithm& algorithm : algorithms()) {
        if (may_be_taken(algorithm, task, profile))
            all.push_back(with_best_segment(algorithm, task, profile));
    }
    // Those that take the same time stay in the order of the table.
    std::ranges::sort(all, {}, [](const Choice& choice) {
        return std::pair(choice.seconds, choice.algorithm - algorithms().data());
    });
    return all;
}

std::string_view Profile::forced_for(Operation operation) const noexcept {
    if (forced.find('=') == std::string::npos) return forced;
    std::string_view rest = forced;
    while (!rest.empty()) {
        const std::string_view entry = next_entry(rest);
        const std::size_t equals = entry.find('=');
        if (entry.substr(0, equals) == name(operation)) return entry.substr(equals + 1);
    }
    return {};
}

Result<void> check_forced(std::string_view forced) {
    while (!forced.empty()) {
        const std::string_view entry = next_entry(forced);
        const std::size_t equals = std::min(entry.find('='), entry.size());
        const auto operation = std::ranges::find(kOperations, entry.substr(0, equals),
                                                 [](Operation one) { return name(one); });
        const std::string_view algorithm = entry.substr(std::min(equals + 1, entry.size()));
        if (operation != kOperations.end() && find_algorithm(*operation, algorithm) != nullptr) {
            continue;
        }
        return Error(Errc::bad_config,
                     fmt::format("\"{}\" forces no algorithm; allowed is a list such as "
                                 "all_reduce=ring,broadcast=chain (nexar explain OPERATION --all "
                                 "names algorithms)",
                                 entry));
    }
    return {};
}

Result<Choice> choose(const Task& task, const Profile& profile) {
    const std::vector<Choice> all = ranked(task, profile);
    std::vector<std::string_view> names;
    names.reserve(all.size());
    for (const Choice& choice : all) names.push_back(choice.algorithm->name);
    const std::string_view forced = profile.forced_for(task.operation);
    if (forced.empty() && !all.empty()) return all.front();
    const auto found = std::ranges::find(names, forced);
    if (found != names.end()) return all[static_cast<std::size_t>(found - names.begin())];
    return Error(Errc::bad_config,
                 fmt::format("no algorithm \"{}\" may be taken for {} here; there are: {}", forced,
                             name(task.operation), fmt::join(names, ", ")));
}

}  // namespace nexar::schedule

#include "process/chaos/growth.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace chaos_checker {

void Growth::check(int rank, const std::map<std::int64_t, Held>& held) {
    if (held.empty()) return;
    const auto warm = held.lower_bound(held.begin()->first + rules_.warm_up_worlds);
    if (warm == held.end()) return;
    const std::map<std::int64_t, Held> rest(warm, held.end());
    check_resident(rank, rest);
    if (rest.rbegin()->first - rest.begin()->first >= rules_.fewest_worlds) {
        check_handles(rank, rest);
    }
}

void Growth::check_resident(int rank, const std::map<std::int64_t, Held>& held) {
    const auto first = held.begin();
    const auto last = std::prev(held.end());
    const std::int64_t growth = last->second.resident_kb - first->second.resident_kb;
    if (growth > found_.most_growth_kb) {
        found_.most_growth_kb = growth;
        found_.worlds_of_growth = last->first - first->first;
    }
    if (growth > rules_.most_growth_kb) {
        wrong_.push_back("the memory of rank " + std::to_string(rank) + " grew by " +
                         std::to_string(growth) + " KiB from world " +
                         std::to_string(first->first) + " to world " + std::to_string(last->first));
    }
}

/// Compares the first third of the worlds with the last, each by its median.
void Growth::check_handles(int rank, const std::map<std::int64_t, Held>& held) {
    const auto third = static_cast<std::ptrdiff_t>(held.size() / 3);
    const auto worlds = static_cast<std::int64_t>(held.size()) - third;  // between the middles
    const auto gained = [&](std::int64_t Held::* what) {
        const auto median = [&](auto begin) {
            std::vector<std::int64_t> all;
            for (auto at = begin; std::ssize(all) < third; ++at) {
                all.push_back(at->second.*what);
            }
            std::ranges::nth_element(all, all.begin() + third / 2);
            return all[static_cast<std::size_t>(third / 2)];
        };
        return median(std::prev(held.end(), third)) - median(held.begin());
    };
    const auto check = [&](const char* what, std::int64_t grown, std::int64_t most,
                           std::int64_t& found) {
        found = std::max(found, grown);
        if (grown <= most) return;
        wrong_.push_back("rank " + std::to_string(rank) + " gained " + std::to_string(grown) + " " +
                         what + " in " + std::to_string(worlds) + " worlds");
    };
    check("bytes of heap per world", gained(&Held::heap) / worlds, rules_.most_heap_per_world,
          found_.heap_per_world);
    check("mappings", gained(&Held::mappings), rules_.most_handles_gained, found_.mappings_gained);
    check("descriptors", gained(&Held::descriptors), rules_.most_handles_gained,
          found_.descriptors_gained);
}

}  // namespace chaos_checker

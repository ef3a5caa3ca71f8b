#include "schedule/links.hpp"

#include <map>

#include "base/mix.hpp"

namespace nexar::schedule {

Links::Links(std::span<const std::uint32_t> machines) {
    // Renumber, so that equal links are equal values.
    std::map<std::uint32_t, std::uint32_t> numbers;
    for (const std::uint32_t machine : machines) {
        const auto next = static_cast<std::uint32_t>(numbers.size());
        hosts_.push_back(numbers.try_emplace(machine, next).first->second);
    }
    if (numbers.size() == hosts_.size()) hosts_.clear();
    if (numbers.size() == 1 && !hosts_.empty()) slowest_ = LinkKind::host;
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

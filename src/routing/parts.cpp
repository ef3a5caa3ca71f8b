#include "routing/parts.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace nexar::routing {

Parts::Result Parts::arrived(TimePoint now, const Part& part, std::vector<std::byte>& packet) {
    expire(now);
    ++counts_.parts;
    if (part.bytes.size() > kMaxSplitBytes) {
        ++counts_.too_large;
        return Result::dropped;
    }
    const std::optional<Place> other = find(part);
    if (!other) {
        keep(now, part);
        return Result::waits;
    }
    return join(*other, part, packet);
}

Parts::Result Parts::join(Place first, const Part& part, std::vector<std::byte>& packet) {
    if (first->second == part.second) {
        ++counts_.repeated;
        return Result::dropped;
    }
    if (first->bytes.size() + part.bytes.size() > kMaxSplitBytes) {
        // Which of the two is wrong is unknown, so neither may wait for another one.
        counts_.too_large += 2;
        drop(first);
        return Result::dropped;
    }
    packet.clear();
    packet.reserve(first->bytes.size() + part.bytes.size());
    packet.assign(first->bytes.begin(), first->bytes.end());
    packet.insert(part.second ? packet.end() : packet.begin(), part.bytes.begin(),
                  part.bytes.end());
    ++counts_.joined;
    drop(first);
    return Result::joined;
}

void Parts::expire(TimePoint now) {
    while (!by_age_.empty() && now - by_age_.front().since >= limits_.longest) {
        drop(by_age_.begin());
        ++counts_.expired;
    }
}

std::optional<TimePoint> Parts::next_deadline() const {
    if (by_age_.empty()) return std::nullopt;
    return by_age_.front().since + limits_.longest;
}

std::size_t Parts::waiting_of(Rank source) const {
    const auto found = sources_.find(source);
    return found == sources_.end() ? 0 : found->second.size();
}

std::optional<Parts::Place> Parts::find(const Part& part) {
    const auto found = sources_.find(part.source);
    if (found == sources_.end()) return std::nullopt;
    const auto place =
        std::ranges::find(found->second, part.number, [](Place one) { return one->number; });
    if (place == found->second.end()) return std::nullopt;
    return *place;
}

void Parts::keep(TimePoint now, const Part& part) {
    NEXAR_ASSERT(by_age_.empty() || by_age_.back().since <= now, "time never goes back");
    if (waiting_of(part.source) >= limits_.per_source) {
        drop(sources_.at(part.source).front());
        ++counts_.crowded_out;
    } else if (by_age_.size() >= limits_.total) {
        drop(by_age_.begin());
        ++counts_.crowded_out;
    }
    by_age_.push_back({.source = part.source,
                       .number = part.number,
                       .second = part.second,
                       .since = now,
                       .bytes = {part.bytes.begin(), part.bytes.end()}});
    sources_[part.source].push_back(std::prev(by_age_.end()));
}

void Parts::drop(Place place) {
    const auto source = sources_.find(place->source);
    NEXAR_ASSERT(source != sources_.end());
    std::erase(source->second, place);
    if (source->second.empty()) sources_.erase(source);
    by_age_.erase(place);
}

}  // namespace nexar::routing

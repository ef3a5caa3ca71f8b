#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "port/stream.hpp"

namespace nexar::detail {

/// Sorted by address, without empty ones.
inline std::vector<port::Bytes> sorted(std::vector<port::Bytes> places) {
    std::erase_if(places, [](port::Bytes place) { return place.empty(); });
    std::ranges::sort(places, {}, [](port::Bytes place) { return place.data(); });
    return places;
}

inline bool overlap_in(std::vector<port::Bytes> places) {
    places = sorted(std::move(places));
    return std::ranges::adjacent_find(places, [](port::Bytes a, port::Bytes b) {
               return a.data() + a.size() > b.data();
           }) != places.end();
}

inline bool meet(port::Bytes a, port::Bytes b) {
    return !a.empty() && !b.empty() && a.data() < b.data() + b.size() &&
           b.data() < a.data() + a.size();
}

inline bool meets(const std::vector<port::Bytes>& places, port::Bytes other) {
    return std::ranges::any_of(places, [&](port::Bytes place) { return meet(place, other); });
}

/// Whether any of `these` overlaps any of `others`. Those in `others` must not overlap each other.
inline bool any_meets(const std::vector<port::Bytes>& these, std::vector<port::Bytes> others) {
    others = sorted(std::move(others));
    return std::ranges::any_of(these, [&](port::Bytes place) {
        const auto after = std::ranges::upper_bound(others, place.data(), {},
                                                    [](port::Bytes other) { return other.data(); });
        return (after != others.end() && meet(place, *after)) ||
               (after != others.begin() && meet(place, *std::prev(after)));
    });
}

}  // namespace nexar::detail

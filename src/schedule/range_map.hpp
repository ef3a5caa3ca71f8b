#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace nexar::schedule {

/// Maps ranges of positions to values, such as who wrote these elements last. Ranges are split
/// where an access begins or ends, so their number depends on the slices in use and never on the
/// number of elements.
template <class T>
class RangeMap {
public:
    struct Entry {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        T value{};
    };

    std::span<const Entry> entries() const noexcept { return entries_; }

    /// The entries that overlap [begin, end), unchanged.
    std::span<const Entry> touching(std::uint64_t begin, std::uint64_t end) const {
        const auto first = first_after(entries_, begin);
        auto last = first;
        while (last != entries_.end() && last->begin < end) ++last;
        return {first, last};
    }

    /// The entries of exactly [begin, end): splits entries that cross its ends, and fills gaps with
    /// T{}.
    std::span<Entry> exactly(std::uint64_t begin, std::uint64_t end) {
        std::size_t at = cut(begin);
        const std::size_t first = at;
        for (std::uint64_t position = begin; position < end; ++at) {
            if (at == entries_.size() || entries_[at].begin > position) {
                const std::uint64_t gap_end =
                    at == entries_.size() ? end : std::min(end, entries_[at].begin);
                entries_.insert(iterator(at), {position, gap_end, T{}});
            } else if (entries_[at].end > end) {
                cut(end);
            }
            position = entries_[at].end;
        }
        return std::span(entries_).subspan(first, at - first);
    }

    /// Replaces whatever [begin, end) holds by one entry.
    void assign(std::uint64_t begin, std::uint64_t end, T value) {
        if (begin == end) return;
        const std::size_t first = cut(begin);
        const std::size_t last = cut(end);
        if (first == last) {
            entries_.insert(iterator(first), {begin, end, std::move(value)});
            return;
        }
        entries_[first] = {begin, end, std::move(value)};
        entries_.erase(iterator(first + 1), iterator(last));
    }

private:
    auto iterator(std::size_t at) { return entries_.begin() + static_cast<std::ptrdiff_t>(at); }

    template <class Entries>
    static auto first_after(Entries& entries, std::uint64_t position) {
        return std::upper_bound(entries.begin(), entries.end(), position,
                                [](std::uint64_t p, const Entry& e) { return p < e.end; });
    }

    /// Splits the entry that contains `position`, if any. Returns the index of the first entry from
    /// there on.
    std::size_t cut(std::uint64_t position) {
        const auto found = first_after(entries_, position);
        const auto at = static_cast<std::size_t>(std::distance(entries_.begin(), found));
        if (found == entries_.end() || found->begin >= position) return at;
        Entry left = *found;
        left.end = position;
        found->begin = position;
        entries_.insert(iterator(at), std::move(left));
        return at + 1;
    }

    std::vector<Entry> entries_;  // by position, not overlapping
};

}  // namespace nexar::schedule

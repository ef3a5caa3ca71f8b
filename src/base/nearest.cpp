#include "base/nearest.hpp"

#include <algorithm>
#include <array>

namespace nexar {

namespace {

constexpr std::size_t kLongest = 64;
using DistanceRow = std::array<std::size_t, kLongest + 1>;

char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same(char a, char b) noexcept {
    return lower(a) == lower(b);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) noexcept {
    a = a.substr(0, kLongest);
    b = b.substr(0, kLongest);
    DistanceRow before_last{};
    DistanceRow last{};
    DistanceRow current{};
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        current[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
            current[j] = std::min({last[j] + 1, current[j - 1] + 1, replaced});
            const bool swapped =
                i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
            if (swapped) current[j] = std::min(current[j], before_last[j - 2] + 1);
        }
        before_last = last;
        last = current;
    }
    return last[b.size()];
}

std::optional<std::string_view> nearest(std::string_view name,
                                        std::span<const std::string_view> candidates) noexcept {
    std::optional<std::string_view> best;
    std::size_t best_distance = (name.size() + 2) / 3;
    for (const std::string_view candidate : candidates) {
        const std::size_t distance = edit_distance(name, candidate);
        if (best ? distance < best_distance : distance <= best_distance) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

}  // namespace nexar

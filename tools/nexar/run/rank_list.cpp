#include "run/rank_list.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace nexar::run {

namespace {

constexpr std::size_t kMostItems = 8;

/// One rank, or at least three consecutive ranks.
struct Item {
    std::uint32_t first = 0;
    std::uint32_t count = 1;
};

std::vector<Item> items_of(std::span<const std::uint32_t> ranks) {
    std::vector<Item> items;
    for (std::size_t i = 0; i < ranks.size();) {
        std::size_t end = i + 1;
        while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
        const std::size_t count = end - i < 3 ? 1 : end - i;
        items.push_back({.first = ranks[i], .count = static_cast<std::uint32_t>(count)});
        i += count;
    }
    return items;
}

}  // namespace

std::string rank_list(std::span<const std::uint32_t> ranks) {
    NEXAR_ASSERT(!ranks.empty());
    const std::vector<Item> items = items_of(ranks);
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    std::size_t left = ranks.size();
    for (std::size_t i = 0; i < items.size(); ++i) {
        const Item& item = items[i];
        if (i == kMostItems && left > 1) return text + fmt::format(" and {} others", left);
        if (i > 0) text += i + 1 == items.size() ? " and " : ", ";
        text += item.count == 1 ? fmt::format("{}", item.first)
                                : fmt::format("{} to {}", item.first, item.first + item.count - 1);
        left -= item.count;
    }
    return text;
}

}  // namespace nexar::run

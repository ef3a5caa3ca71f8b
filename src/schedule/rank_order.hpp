#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace nexar::schedule {

/// The order of ranks around a ring; by default the order of their numbers. Cheap to copy.
class RankOrder {
public:
    RankOrder() = default;

    /// ranks[position]: every rank of the world once.
    explicit RankOrder(std::vector<std::uint32_t> ranks) {
        Lists lists{.ranks = std::move(ranks), .positions = {}};
        const auto world = static_cast<std::uint32_t>(lists.ranks.size());
        lists.positions.assign(world, world);
        bool natural = true;
        for (std::uint32_t position = 0; position < world; ++position) {
            const std::uint32_t rank = lists.ranks[position];
            NEXAR_ASSERT(rank < world && lists.positions[rank] == world, "a permutation");
            lists.positions[rank] = position;
            natural = natural && rank == position;
        }
        if (!natural) lists_ = std::make_shared<const Lists>(std::move(lists));
    }

    std::uint32_t rank_at(std::uint32_t position) const {
        return lists_ == nullptr ? position : lists_->ranks[position];
    }
    std::uint32_t position_of(std::uint32_t rank) const {
        return lists_ == nullptr ? rank : lists_->positions[rank];
    }

    /// The ranks by position, as Builder::among() takes them: empty if they are in the order of
    /// their numbers.
    std::span<const std::uint32_t> ranks() const noexcept {
        return lists_ == nullptr ? std::span<const std::uint32_t>() : std::span(lists_->ranks);
    }

private:
    struct Lists {
        std::vector<std::uint32_t> ranks{};
        std::vector<std::uint32_t> positions{};
    };

    std::shared_ptr<const Lists> lists_{};  // null: in the order of their numbers
};

}  // namespace nexar::schedule

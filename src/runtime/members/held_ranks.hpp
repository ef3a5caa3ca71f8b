#pragma once

#include <nexar/work.hpp>
#include <utility>
#include <vector>

namespace nexar::detail {

/// A list of ranks that a task returns.
class HeldRanks final : public Held {
public:
    explicit HeldRanks(std::vector<int> list) noexcept : ranks(std::move(list)) {}

    std::vector<int> ranks;
};

}  // namespace nexar::detail

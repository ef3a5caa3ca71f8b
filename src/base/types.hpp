#pragma once

#include <cstdint>
#include <nexar/types.hpp>
#include <optional>

namespace nexar {

/// Index of a member in a communicator, from 0. Users see it as an int, see public_rank().
using Rank = Strong<struct RankName, std::uint32_t>;

/// Number of a view. Epochs only grow.
using Epoch = Strong<struct EpochName, std::uint64_t>;

/// Identifies a communicator on the wire.
using ContextId = Strong<struct ContextName, std::uint64_t>;

/// A rank as the public API represents it.
constexpr int public_rank(Rank rank) noexcept {
    return static_cast<int>(rank.value());
}

/// The rank that an error names, or nullopt if it names none.
constexpr std::optional<Rank> internal_rank(std::optional<int> rank) noexcept {
    if (!rank || *rank < 0) return std::nullopt;
    return Rank(static_cast<std::uint32_t>(*rank));
}

}  // namespace nexar

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace nexar {

/// How many letters must be inserted, deleted, replaced or swapped with their neighbour to turn one
/// name into the other (optimal string alignment), letters compared without regard to case. Only
/// the first 64 bytes of each name are looked at.
std::size_t edit_distance(std::string_view a, std::string_view b) noexcept;

/// The candidate that a misspelled `name` most likely meant: the one with the smallest edit
/// distance (of equals the first), unless that is more than a third of the name's length, rounded
/// up. The view is into `candidates`.
std::optional<std::string_view> nearest(std::string_view name,
                                        std::span<const std::string_view> candidates) noexcept;

}  // namespace nexar

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace nexar {

/// How many letters must be inserted, deleted, replaced or swapped with their neighbour to turn one
/// name into the other (optimal string alignment), ignoring case. Considers only the first 64 bytes
/// of each name.
std::size_t edit_distance(std::string_view a, std::string_view b) noexcept;

/// The candidate most similar to a misspelled `name`: the first one with the smallest edit
/// distance, or nullopt if that distance is more than a third of the name's length, rounded up. The
/// view refers to an element of `candidates`.
std::optional<std::string_view> nearest(std::string_view name,
                                        std::span<const std::string_view> candidates) noexcept;

}  // namespace nexar

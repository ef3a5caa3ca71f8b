#pragma once

#include <cstddef>

namespace nexar {

/// Bytes that cores hand to each other as one piece on every machine we build for. Fixed rather
/// than std::hardware_destructive_interference_size, whose value changes with compiler flags.
inline constexpr std::size_t kCacheLine = 64;

/// Distance between two variables that different threads write all the time: x86 prefetches lines
/// in pairs, and some aarch64 cores have lines of 128 bytes.
inline constexpr std::size_t kContendedDistance = 128;

}  // namespace nexar

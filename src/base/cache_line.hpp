#pragma once

#include <cstddef>

namespace nexar {

/// The unit in which cores exchange memory on every machine we build for, in bytes. Fixed rather
/// than std::hardware_destructive_interference_size, whose value changes with compiler flags.
inline constexpr std::size_t kCacheLine = 64;

/// Distance between two variables that different threads write frequently: x86 prefetches lines in
/// pairs, and some aarch64 cores have 128-byte lines.
inline constexpr std::size_t kContendedDistance = 128;

}  // namespace nexar

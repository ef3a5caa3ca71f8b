#pragma once

#include <cstdint>

namespace nexar {

/// The finaliser of MurmurHash3 (A. Appleby): every bit of the input affects every bit of the
/// result. Fit for hash tables, together with a seed; not for values that an attacker must not
/// guess.
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
    x = (x ^ (x >> 33U)) * 0xff51afd7ed558ccdU;
    x = (x ^ (x >> 33U)) * 0xc4ceb9fe1a85ec53U;
    return x ^ (x >> 33U);
}

}  // namespace nexar

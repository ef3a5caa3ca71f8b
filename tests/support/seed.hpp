#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace nexar {

/// The seed of a randomised test: NEXAR_TEST_SEED if set, else `fallback`. Prints it, so that a
/// failed run can be repeated.
inline std::uint64_t test_seed(std::uint64_t fallback) {
    const char* const given = std::getenv("NEXAR_TEST_SEED");
    const std::uint64_t seed = given == nullptr ? fallback : std::strtoull(given, nullptr, 0);
    std::printf("NEXAR_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    return seed;
}

}  // namespace nexar

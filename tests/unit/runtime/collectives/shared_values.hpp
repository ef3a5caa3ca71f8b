#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nexar/nexar.hpp>
#include <span>
#include <string>

namespace nexar::testing {

using Shared = SharedBuffer<std::int64_t>;

/// Elements of a vector that is too long for a slot.
inline constexpr std::size_t kLong = 60'001;

/// The mappings of shared memory in this process.
inline std::size_t mappings() {
    std::ifstream maps("/proc/self/maps");
    std::size_t found = 0;
    for (std::string line; std::getline(maps, line);) {
        if (line.find("memfd:nexar") != std::string::npos) ++found;
    }
    return found;
}

inline std::size_t descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

inline std::int64_t element(std::size_t rank, std::size_t i) {
    return static_cast<std::int64_t>((rank + 1) * 1'000'003 + i * 17);
}
inline std::int64_t sum_of(std::size_t world, std::size_t i) {
    std::int64_t all = 0;
    for (std::size_t rank = 0; rank < world; ++rank) all += element(rank, i);
    return all;
}
inline void fill(std::size_t rank, std::span<std::int64_t> values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(rank, i);
}
inline void expect_sums(std::size_t world, std::span<const std::int64_t> values) {
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], sum_of(world, i)) << i;
}

}  // namespace nexar::testing

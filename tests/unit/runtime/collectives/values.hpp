#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "unit/runtime/collectives/ranks.hpp"

namespace nexar::testing {

/// 24 bytes, seven of them padding.
struct Extent {
    std::int64_t low = 0;
    std::int64_t high = 0;
    char mark = 0;

    friend bool operator==(const Extent&, const Extent&) noexcept = default;
};

class NoDefault {
public:
    explicit NoDefault(int value) : value_(value) {}
    friend bool operator==(const NoDefault&, const NoDefault&) noexcept = default;

private:
    int value_;
};

enum class Light : std::uint16_t { red, green };

/// Calls `start(communicator, rank)` for every rank, then waits. Element i is the value of rank i.
template <class Start>
auto on_all(std::vector<Communicator>& ranks, Start start) {
    using W = decltype(start(std::as_const(ranks[0]), std::size_t{0}));
    std::vector<W> works;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        works.push_back(start(std::as_const(ranks[rank]), rank));
    }
    std::vector<decltype(works[0].wait())> values;
    for (W& work : works) values.push_back(outcome(work).value());
    return values;
}

template <class T, class Start>
void expect_all(std::vector<Communicator>& ranks, const T& want, Start start) {
    const auto values = on_all(ranks, std::move(start));
    for (std::size_t rank = 0; rank < values.size(); ++rank) {
        EXPECT_TRUE(values[rank] == want) << "at rank " << rank;
    }
}

}  // namespace nexar::testing

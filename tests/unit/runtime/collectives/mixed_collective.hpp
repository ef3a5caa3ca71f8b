#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <nexar/nexar.hpp>

#include "support/collective_data.hpp"

namespace nexar::testing {

/// Kinds of collectives for tests that run all of them beside each other.
enum class Kind : std::uint8_t {
    all_reduce,
    all_reduce_in_place,
    reduce,
    broadcast,
    all_gather,
    gather,
    scatter,
    reduce_scatter,
    all_to_all,
    scan,
    exclusive_scan,
    barrier,
};
inline constexpr std::size_t kKinds = 12;

/// One collective with memory for all ranks, or the part of one process in it: whoever makes it of
/// the same values has the same data. `start` and `right` of different ranks may be called by
/// different threads.
class MixedCollective {
public:
    MixedCollective(Kind kind, std::uint64_t seed, std::size_t world, std::size_t count);
    /// Kind and size by the seed; the size below `most`.
    static MixedCollective random(std::uint64_t seed, std::size_t world, std::size_t most);

    Work<> start(const Communicator& communicator);
    /// Whether this rank got what it should; when its Work has ended.
    ::testing::AssertionResult right(std::size_t rank) const;

private:
    using Number = std::int64_t;

    void expect();

    Kind kind_;
    std::size_t world_;
    std::size_t count_;
    std::size_t root_;
    PerRank<Number> in_;
    PerRank<Number> out_;
    PerRank<Number> want_;  // empty for a rank that gets nothing
};

/// One of each kind, one after the other, on ranks that are driven from here.
void expect_every_kind_works(std::vector<Communicator>& ranks, std::uint64_t seed);

}  // namespace nexar::testing

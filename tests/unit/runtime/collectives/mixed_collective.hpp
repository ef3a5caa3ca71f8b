#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <nexar/nexar.hpp>

#include "support/collective_data.hpp"

namespace nexar::testing {

/// Kinds of collectives for tests that run all of them concurrently.
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

/// One collective with memory for all ranks. The data depends only on the constructor's arguments,
/// so each rank may also construct its own. Different threads may call `start` and `right` for
/// different ranks.
class MixedCollective {
public:
    MixedCollective(Kind kind, std::uint64_t seed, std::size_t world, std::size_t count);
    /// Derives kind and size from the seed; the size is below `most`.
    static MixedCollective random(std::uint64_t seed, std::size_t world, std::size_t most);

    Work<> start(const Communicator& communicator);
    /// Whether this rank has the right result. Call it only after its Work has completed.
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
    PerRank<Number> want_;  // empty for a rank without a result
};

/// Runs one collective of each kind after another on all ranks from this thread.
void expect_every_kind_works(std::vector<Communicator>& ranks, std::uint64_t seed);

}  // namespace nexar::testing

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nexar/collective_operation.hpp>
#include <string_view>

#include "schedule/chunks.hpp"
#include "schedule/links.hpp"
#include "schedule/rank_order.hpp"
#include "schedule/schedule.hpp"
#include "schedule/spanning_tree.hpp"

namespace nexar::schedule {

using detail::Collective;

inline constexpr std::array kCollectives{
    Collective::all_reduce,     Collective::reduce,     Collective::broadcast,
    Collective::all_gather,     Collective::gather,     Collective::scatter,
    Collective::reduce_scatter, Collective::all_to_all, Collective::scan,
    Collective::exclusive_scan, Collective::barrier};

std::string_view name(Collective operation) noexcept;

/// Returns true if the operation folds elements of several ranks.
bool reduces(Collective operation) noexcept;

/// Returns true if one rank, the root, holds the data at the start or gets it at the end.
bool rooted(Collective operation) noexcept;

/// The input of an algorithm: everything that one rank knows about the collective that it is about
/// to run. A schedule is a pure function of it; ranks do not communicate to build their schedules.
///
/// Sizes of the buffers in elements, with `own` = chunks.count(rank) and `all` = chunks.total():
///
/// | operation              | input             | output                             |
/// |------------------------|-------------------|------------------------------------|
/// | all_reduce, both scans | all               | all                                |
/// | reduce                 | all               | all at the root, else none         |
/// | broadcast              | none              | all; at the root full at the start |
/// | all_gather             | own               | all                                |
/// | gather                 | own               | all at the root, else none         |
/// | scatter                | all at root       | own                                |
/// | reduce_scatter         | all               | own                                |
/// | all_to_all             | all               | receives.total()                   |
///
/// In place there is no input buffer: at the start `output` holds the input, which is the whole
/// vector, or for all_gather and gather the rank's own chunk in its final place. In place,
/// reduce_scatter's output is as long as its input; the result is in the rank's own chunk, and the
/// rest is undefined afterwards. The root of an in-place scatter has all chunks in its output and
/// keeps its own chunk where it is. For operations with a root, only the root can be in place. The
/// result of an exclusive scan at rank 0 is undefined.
struct Request {
    Collective operation = Collective::barrier;
    std::uint32_t world = 1;
    std::uint32_t rank = 0;
    std::uint32_t root = 0;  // for operations with a root
    bool in_place = false;
    /// Elements per segment; 0: whole chunks. Equal on all ranks. Algorithms that cannot pipeline
    /// ignore it.
    std::uint64_t segment = 0;
    /// Partners with which windowed all_to_all exchanges at a time. Equal on all ranks.
    std::uint32_t window = 4;
    /// How the data is divided among ranks: always evenly for all_reduce, reduce, broadcast and
    /// scans. In gather and scatter with different counts only the root knows counts other than its
    /// own. For all_to_all: how the input is divided by receiver.
    Chunks chunks;
    /// For all_to_all: how the output is divided by sender.
    Chunks receives;
    /// In a sparse topology, the order in which rings visit the ranks. Equal on all ranks.
    RankOrder order;
    /// For algorithms along a given tree: that of the root, or of rank 0 for operations without a
    /// root. Equal on all ranks. follow() fills in both.
    std::shared_ptr<const SpanningTree> tree;
    /// The hosts of the ranks, for two-level algorithms. Equal on all ranks.
    Links links;

    bool is_root() const noexcept { return rank == root; }
};

/// Returns true if this rank's input is in its output buffer.
bool in_place_here(const Request& request) noexcept;

/// The rank's whole input (in place: the part of the output that holds it) and its whole output.
Slice input_of(const Request& request);
Slice output_of(const Request& request);

/// Where the rank's result is at the end; differs from output_of() in place.
Slice result_of(const Request& request);

/// Rank + distance modulo world, for distances up to world.
constexpr std::uint32_t around(std::uint32_t rank, std::uint32_t distance,
                               std::uint32_t world) noexcept {
    const std::uint32_t left = world - rank;
    return distance < left ? rank + distance : distance - left;
}

/// The distance from `from` forward to `to`, modulo world.
constexpr std::uint32_t distance(std::uint32_t from, std::uint32_t to,
                                 std::uint32_t world) noexcept {
    return to >= from ? to - from : world - from + to;
}

}  // namespace nexar::schedule

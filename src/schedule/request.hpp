#pragma once

#include <array>
#include <cstdint>
#include <nexar/collective_operation.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "schedule/chunks.hpp"
#include "schedule/schedule.hpp"

namespace nexar::schedule {

using detail::Collective;

inline constexpr std::array kCollectives{
    Collective::all_reduce,     Collective::reduce,     Collective::broadcast,
    Collective::all_gather,     Collective::gather,     Collective::scatter,
    Collective::reduce_scatter, Collective::all_to_all, Collective::scan,
    Collective::exclusive_scan, Collective::barrier};

std::string_view name(Collective operation) noexcept;

/// Whether the operation folds elements of several ranks.
bool reduces(Collective operation) noexcept;

/// Whether one rank is special: it has the data at the start or gets it at the end.
bool rooted(Collective operation) noexcept;

/// A rank's place in a spanning tree that somebody else drew. The order of children is the order
/// in which they are served.
struct TreePlace {
    std::optional<std::uint32_t> parent;  // none at the root
    std::vector<std::uint32_t> children;
};

/// What an algorithm gets: everything that one rank knows about the collective that it is about to
/// run. A schedule is a pure function of it; ranks do not talk to build theirs.
///
/// What the buffers hold, in elements, with `own` = chunks.count(rank), `all` = chunks.total():
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
/// In place there is no input, and output holds it at the start: the whole of it; for all_gather
/// and gather own chunk at its place. In place, reduce_scatter's output is as long as its input was
/// and the result stands where the own chunk stood, the rest is undefined afterwards; scatter's
/// root has all in its output and its own chunk stays where it is. For operations with a root, in
/// place concerns the root only. The result of an exclusive scan at rank 0 is undefined.
struct Request {
    Collective operation = Collective::barrier;
    std::uint32_t world = 1;
    std::uint32_t rank = 0;
    std::uint32_t root = 0;  // operations with a root
    bool in_place = false;
    /// Elements per segment, 0 for whole chunks. Equal on all ranks. Algorithms that cannot
    /// pipeline do not look at it.
    std::uint64_t segment = 0;
    /// Peers served at a time by windowed all_to_all. Equal on all ranks.
    std::uint32_t window = 4;
    /// How the data divides over ranks. all_reduce, reduce, broadcast, scans: evenly, always.
    /// gather and scatter with counts: only the root needs other counts than its own. all_to_all:
    /// how the input divides by receiver.
    Chunks chunks;
    /// all_to_all: how the output divides by sender.
    Chunks receives;
    /// broadcast by spanning tree.
    TreePlace tree;

    bool is_root() const noexcept { return rank == root; }
};

/// Whether this rank's input stands in its output.
bool in_place_here(const Request& request) noexcept;

/// The rank's whole input (in place: where it stands in the output) and its whole output.
Slice input_of(const Request& request);
Slice output_of(const Request& request);

/// Where the rank's result stands at the end; differs from output_of in place.
Slice result_of(const Request& request);

/// Ring arithmetic: rank + distance modulo world, for distances up to world.
constexpr std::uint32_t around(std::uint32_t rank, std::uint32_t distance,
                               std::uint32_t world) noexcept {
    const std::uint32_t left = world - rank;
    return distance < left ? rank + distance : distance - left;
}

/// How far `to` is after `from` on the ring.
constexpr std::uint32_t distance(std::uint32_t from, std::uint32_t to,
                                 std::uint32_t world) noexcept {
    return to >= from ? to - from : world - from + to;
}

}  // namespace nexar::schedule

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/byte_fold.hpp"

/// Collectives as data. A schedule says what one rank does; all ranks' schedules of one request
/// together are the collective. Plain values: what runs them is the engine's executor, what proves
/// them is check/checker.hpp.
namespace nexar::schedule {

/// Which of a rank's buffers. `input` is never written. In place there is no input: `output`
/// holds it at the start.
enum class Space : std::uint8_t { input, output, scratch };

/// A range of one buffer, in elements.
struct Slice {
    Space space = Space::input;
    std::uint64_t offset = 0;
    std::uint64_t count = 0;

    std::uint64_t end() const noexcept { return offset + count; }
    friend bool operator==(const Slice&, const Slice&) = default;
};

/// The part of `whole` from `offset` on.
constexpr Slice part(const Slice& whole, std::uint64_t offset, std::uint64_t count) noexcept {
    return {whole.space, whole.offset + offset, count};
}

constexpr bool overlap(const Slice& a, const Slice& b) noexcept {
    return a.space == b.space && a.offset < b.offset + b.count && b.offset < a.offset + a.count;
}

enum class Kind : std::uint8_t {
    send,            // peer gets `from`
    receive_copy,    // into = incoming
    receive_reduce,  // into = incoming op local, or local op incoming: see side
    copy,            // into = from
    reduce,          // into = from op local, or local op from: see side
};

constexpr bool receives(Kind kind) noexcept {
    return kind == Kind::receive_copy || kind == Kind::receive_reduce;
}
constexpr bool is_message(Kind kind) noexcept {
    return kind == Kind::send || receives(kind);
}
constexpr bool folds(Kind kind) noexcept {
    return kind == Kind::receive_reduce || kind == Kind::reduce;
}
/// Whether steps of this kind read `from`, and write `into`.
constexpr bool reads_from(Kind kind) noexcept {
    return !receives(kind);
}
constexpr bool writes_into(Kind kind) noexcept {
    return kind != Kind::send;
}

/// How the elements of a message travel.
enum class Codec : std::uint8_t { none };

/// One thing that a rank does. Steps that no dependency orders may run at the same time, in any
/// order; their place in the schedule says nothing.
///
/// A message is found by (sender, receiver, number); its send and its receive have the same count
/// and segment. The number is the ordinal of the message in the ordered pair, from 0: both sides
/// come to it alone, and per peer the numbers are dense.
///
/// With a segment the step runs in pieces of that many elements, the last one shorter. Pieces start
/// in order (piece k+1 not before piece k) and several may be under way.
struct Step {
    Kind kind = Kind::copy;
    Codec codec = Codec::none;
    compute::Side side = compute::Side::left;  // where the incoming operand, or `from`, stands
    std::uint32_t peer = 0;
    std::uint32_t message = 0;
    std::uint32_t first_dependency = 0;  // in Schedule::dependencies
    std::uint32_t dependency_count = 0;
    std::uint64_t segment = 0;  // elements; 0: the whole in one piece
    Slice from{};
    Slice into{};
    Slice local{};  // exactly `into`, or disjoint from it

    /// Elements that the step moves.
    std::uint64_t count() const noexcept { return receives(kind) ? into.count : from.count; }

    /// Pieces that the step runs in; 1 for a message without elements.
    std::uint64_t segments() const noexcept {
        if (segment == 0 || count() <= segment) return 1;
        return count() / segment + (count() % segment != 0 ? 1 : 0);
    }
};

/// What of a step is waited for. Only a send has a release.
enum class Milestone : std::uint8_t {
    finished,  // the elements are there; for a send: the receiver has them
    released,  // the memory of the send is not read again, not even to retransmit; after finished
};

/// A step starts after that event of another step of the same rank. Pipelined: its piece k waits
/// only for piece k of the other, which has as many; else it waits for the whole step.
///
/// Who overwrites memory that was sent waits for its release.
struct Dependency {
    std::uint32_t step = 0;
    Milestone event = Milestone::finished;
    bool pipelined = false;

    friend bool operator==(const Dependency&, const Dependency&) = default;
};

/// What one rank does in one collective.
struct Schedule {
    std::vector<Step> steps;
    std::vector<Dependency> dependencies;  // of all steps, see Step::first_dependency
    std::uint64_t scratch = 0;             // elements of the scratch buffer

    std::span<const Dependency> dependencies_of(std::size_t step) const {
        const Step& s = steps[step];
        return std::span(dependencies).subspan(s.first_dependency, s.dependency_count);
    }
};

std::string to_text(const Slice& slice);
std::string to_text(const Step& step);

/// One line per step: its number, what it does, what it waits for (`3` finished, `3r` released,
/// `~` pipelined).
std::string to_text(const Schedule& schedule);

}  // namespace nexar::schedule

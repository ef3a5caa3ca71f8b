#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compute/byte_fold.hpp"

/// Collectives as data. A schedule says what one rank does; the schedules of all ranks for one
/// request are the collective. Schedules are plain values: the engine's executor runs them, and
/// check/checker.hpp proves them correct.
namespace nexar::schedule {

/// One of a rank's buffers. No step writes to `input`. In place there is no input buffer: `output`
/// holds the input at the start.
enum class Space : std::uint8_t { input, output, scratch };

/// A range of one buffer, in elements.
struct Slice {
    Space space = Space::input;
    std::uint64_t offset = 0;
    std::uint64_t count = 0;

    std::uint64_t end() const noexcept { return offset + count; }
    friend bool operator==(const Slice&, const Slice&) = default;
};

/// `count` elements of `whole`, starting at `offset`.
constexpr Slice part(const Slice& whole, std::uint64_t offset, std::uint64_t count) noexcept {
    return {whole.space, whole.offset + offset, count};
}

constexpr bool overlap(const Slice& a, const Slice& b) noexcept {
    return a.space == b.space && a.offset < b.offset + b.count && b.offset < a.offset + a.count;
}

enum class Kind : std::uint8_t {
    send,            // sends `from` to the peer
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
/// Whether steps of this kind read `from`, and whether they write `into`.
constexpr bool reads_from(Kind kind) noexcept {
    return !receives(kind);
}
constexpr bool writes_into(Kind kind) noexcept {
    return kind != Kind::send;
}

/// The encoding of the elements of a message.
enum class Codec : std::uint8_t { none };

/// One action of a rank. Steps that no dependency orders may run concurrently and in any order;
/// their position in the schedule has no meaning.
///
/// A message is identified by sender, receiver and number; its send and its receive have equal
/// counts and segments. Messages of an ordered pair of ranks are numbered from 0 without gaps, so
/// both ranks derive the number on their own.
///
/// With a segment the step runs in pieces of that many elements; the last piece may be shorter.
/// Pieces start in order (piece k+1 not before piece k), and several may be in progress.
struct Step {
    Kind kind = Kind::copy;
    Codec codec = Codec::none;
    compute::Side side = compute::Side::left;  // of the incoming operand, or of `from`
    std::uint32_t peer = 0;
    std::uint32_t message = 0;
    std::uint32_t first_dependency = 0;  // in Schedule::dependencies
    std::uint32_t dependency_count = 0;
    std::uint64_t segment = 0;  // elements; 0: one piece
    /// For a message in memory, see Medium; equal at both ends. The stage is greater than that of
    /// every message that the send waits for. The place is where the sender puts a piece in its
    /// segment, in elements; sends of one slice with one place are one copy.
    std::uint32_t stage = 0;
    std::uint64_t place = 0;
    Slice from{};
    Slice into{};
    Slice local{};  // exactly `into`, or disjoint from it

    /// Number of elements that the step moves.
    std::uint64_t count() const noexcept { return receives(kind) ? into.count : from.count; }

    /// Number of pieces that the step runs in; 1 for a message without elements.
    std::uint64_t segments() const noexcept {
        if (segment == 0 || count() <= segment) return 1;
        return count() / segment + (count() % segment != 0 ? 1 : 0);
    }
};

/// The event of a step that another step waits for. Only sends are released.
enum class Milestone : std::uint8_t {
    finished,  // the elements are in place; for a send: at the receiver
    released,  // nothing will read the sent memory again, not even a retransmission; after finished
};

/// A step starts after this event of another step of the same rank. If pipelined, its piece k waits
/// only for piece k of the other step, which has as many pieces; otherwise it waits for all of it.
///
/// A step that overwrites sent memory must wait for the release of the send.
struct Dependency {
    std::uint32_t step = 0;
    Milestone event = Milestone::finished;
    bool pipelined = false;

    friend bool operator==(const Dependency&, const Dependency&) = default;
};

/// What one rank does in one collective.
struct Schedule {
    std::vector<Step> steps;
    std::vector<Dependency> dependencies;  // of all steps; see Step::first_dependency
    std::uint64_t scratch = 0;             // elements of the scratch buffer

    std::span<const Dependency> dependencies_of(std::size_t step) const {
        const Step& s = steps[step];
        return std::span(dependencies).subspan(s.first_dependency, s.dependency_count);
    }
};

std::string to_text(const Slice& slice);
std::string to_text(const Step& step);

/// One line per step: its number, its action and what it waits for (`3` finished, `3r` released,
/// `~` pipelined).
std::string to_text(const Schedule& schedule);

}  // namespace nexar::schedule

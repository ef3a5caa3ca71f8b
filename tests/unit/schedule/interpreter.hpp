#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "schedule/algorithm.hpp"

namespace nexar::schedule::testing {

/// An associative operator on 64-bit numbers.
using Operator = std::uint64_t (*)(std::uint64_t, std::uint64_t);

std::uint64_t sum(std::uint64_t a, std::uint64_t b);

/// Composes the maps x -> ax + b modulo a prime, packed into one number: does not commute.
std::uint64_t compose(std::uint64_t a, std::uint64_t b);

/// Element `index` of a rank's input: a valid operand of compose(), different for every element.
std::uint64_t element(std::uint32_t rank, std::uint64_t index);

/// Runs the schedules of all ranks on real numbers, one event at a time, in a random order that the
/// dependencies and synchronous sends allow; in memory a send does not wait for its receive. It is
/// as hostile as a network may be: the target of a step holds garbage from its start to its end,
/// its operands must not change meanwhile, and sent memory must not change until its release, which
/// happens at a random time after the end.
///
/// Shares no code with the checker and runs segments one by one.
class Interpreter {
public:
    Interpreter(const std::vector<Request>& requests, const std::vector<Schedule>& schedules,
                Operator op, Random& random, Medium medium = Medium::messages);

    /// Returns what went wrong (a deadlock, memory that changed during a step), or an empty string.
    std::string run();

    const std::vector<std::uint64_t>& output(std::uint32_t rank) const {
        return memory_[rank][static_cast<std::size_t>(Space::output)];
    }
    const std::vector<std::uint64_t>& input(std::uint32_t rank) const {
        return memory_[rank][static_cast<std::size_t>(Space::input)];
    }

private:
    enum class State : std::uint8_t { waiting, started, finished, released };
    using Elements = std::vector<std::uint64_t>;

    /// One segment of a step in progress.
    struct Piece {
        std::uint32_t rank = 0;
        std::uint32_t step = 0;
        std::uint64_t number = 0;
        State state = State::waiting;
        Elements from;  // at the start
        Elements local;
    };

    const Step& step(const Piece& piece) const { return schedules_[piece.rank].steps[piece.step]; }
    Piece& piece(std::uint32_t rank, std::uint32_t step, std::uint64_t number) {
        return pieces_[first_[rank][step] + number];
    }
    bool waits_for_other_end(Kind kind) const {
        return medium_ == Medium::messages ? is_message(kind) : receives(kind);
    }
    Piece& other_end(const Piece& piece);
    Slice cut(const Piece& piece, const Slice& whole) const;
    Elements load(const Piece& piece, const Slice& whole) const;
    void store(const Piece& piece, const Slice& whole, const Elements& elements);
    bool may_start(const Piece& piece);
    bool advance(Piece& piece);
    void start(Piece& piece);
    void finish(Piece& piece);
    void expect_unchanged(const Piece& piece, const Slice& whole, const Elements& before);

    const std::vector<Schedule>& schedules_;
    Operator op_;
    Random& random_;
    Medium medium_;
    std::vector<std::array<Elements, 3>> memory_;  // per rank and space
    std::vector<std::vector<std::size_t>> first_;  // first piece of each rank's steps
    std::vector<Piece> pieces_;
    std::string violation_;
};

}  // namespace nexar::schedule::testing

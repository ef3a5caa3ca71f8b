#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "schedule/schedule.hpp"

/// The state of run_on_clock().
namespace nexar::schedule::timing {

using StepId = std::uint32_t;   // over all ranks
using PieceId = std::uint32_t;  // over all steps

enum class Moment : std::uint8_t {
    ready,    // everything that the piece waits for has happened
    passes,   // a relay begins to handle a message
    arrives,  // the receiver begins to handle a message
    came,     // the receiver has all of it
    finished,
    released,
};

struct Happening {
    double at = 0;
    std::uint64_t number = 0;  // orders events of equal time: first found, first handled
    Moment moment{};
    StepId step = 0;
    PieceId piece = 0;
    std::uint32_t relay = 0;

    friend bool operator>(const Happening& a, const Happening& b) noexcept {
        return std::pair(a.at, a.number) > std::pair(b.at, b.number);
    }
};

/// A step that waits for another step of the same rank.
struct Dependent {
    StepId step = 0;
    Milestone event{};
    bool pipelined = false;
};

struct StepState {
    const Step* step = nullptr;
    std::uint32_t rank = 0;
    PieceId first_piece = 0;
    std::uint32_t pieces = 0;
    std::uint32_t finished = 0;  // pieces
    std::uint32_t released = 0;
    StepId partner = 0;  // the other end of a message
    std::uint32_t first_dependent = 0;
    std::uint32_t dependents = 0;
};

struct PieceState {
    std::uint32_t waits_for = 0;
    bool ready = false;
    bool came = false;
    double through = 0;  // when the network has carried all of it
};

/// When the network of a host is free again, in each direction.
struct Network {
    double out = 0;
    double in = 0;
};

/// When each of a rank's three servers is free again.
struct Servers {
    double out = 0;
    double in = 0;
    double processor = 0;
    double relayed = 0;  // bytes
};

inline double serve(double& free_at, double now, double time) noexcept {
    free_at = std::max(free_at, now) + time;
    return free_at;
}

}  // namespace nexar::schedule::timing

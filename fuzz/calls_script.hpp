#pragma once

#include <cstdint>

namespace nexar::fuzz {

/// What an input of the harness `calls` consists of, as Act of the harness `engine`.
enum class CallAct : std::uint8_t {
    request,   // number, which function and time, size (2)
    response,  // number, whether well, size (2)
    cancel,    // number
    payload,   // length (2): on the lane
    open,      // part, number: a stream
    bytes,     // which stream, length (2)
    finish,    // which stream
    reset,     // which stream
    raw,       // length: bytes as they are
    call,      // to and how, size (2)
    give_up,   // which call of this side
    take,      // the next call that is to run
    respond,   // which of those that run, size (2)
    time,      // nanoseconds
    room,      // of the lane
    release,   // outcome
    remove,    // the function
    down,      // the link goes down
    close,     // the engine is closed
    turn,      // events are handled
    no_more,
};

}  // namespace nexar::fuzz

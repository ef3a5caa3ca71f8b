#pragma once

#include <cstdint>

namespace nexar::fuzz {

/// The acts that make up an input of the harness `calls`, like Act for the harness `engine`.
enum class CallAct : std::uint8_t {
    request,   // number, which function and time, size (2)
    response,  // number, success or failure, size (2)
    cancel,    // number
    payload,   // length (2): on the lane
    open,      // part, number: a stream
    bytes,     // which stream, length (2)
    finish,    // which stream
    reset,     // which stream
    raw,       // length: bytes as they are
    call,      // target and kind, size (2)
    give_up,   // which call of this side
    take,      // the next call to run
    respond,   // which running call, size (2)
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

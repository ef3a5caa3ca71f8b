#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/error.hpp>
#include <optional>
#include <string>
#include <vector>
#include "base/types.hpp"

#include "base/time.hpp"
#include "engine/intrusive_list.hpp"
#include "engine/operation.hpp"
#include "port/link.hpp"
#include "wire/preamble.hpp"

namespace nexar::engine {

class CallOperation;
class InBulk;
struct InCall;
struct Peer;

/// What a peer may make this node hold by calls, and what a call may be.
struct CallLimits {
    std::uint64_t max_request = std::uint64_t{64} << 20U;   // bytes
    std::uint64_t max_response = std::uint64_t{64} << 20U;  // bytes, of the functions served here
    /// Calls of one peer that were not answered, or whose function has not returned.
    std::size_t max_in_flight = 1024;
    /// Bytes of one peer's requests and of the responses to it that are not sent.
    std::uint64_t max_held = std::uint64_t{64} << 20U;
    /// Answers of one peer that nobody waits for any more and that it owes; beyond, it is cut off.
    std::size_t max_owed = 65536;
    /// Frames to one peer that wait because it does not read; beyond, it is cut off.
    std::size_t max_backlog = 65536;
};

/// A function that is served here. Belongs to whoever serves it, and stays where it is until
/// Calls::remove().
struct Function {
    std::uint16_t number = 0;
    std::string name{};                          // empty: it is called by its number
    std::optional<std::vector<Rank>> callers{};  // who may call; none: all
    std::uint64_t max_request = std::uint64_t{64} << 20U;
    void* owner = nullptr;
};

/// A payload of a call that comes on a stream of its own.
struct CallPayload {
    bool known = false;  // how many bytes it has: the frame that says it came
    std::uint64_t size = 0;
    std::vector<std::byte> bytes{};  // takes memory as they come
    InBulk* stream = nullptr;
    InCall* request = nullptr;  // whose it is, or
    CallOperation* response = nullptr;
};

/// A call that this node makes. Ends with `response` or an error, when no link uses `content`.
class CallOperation final : public Operation, public port::Source {
public:
    CallOperation() noexcept : Operation(Kind::call) {}

    // Set before start().
    Rank to{};
    std::uint16_t function = 0;
    std::string name{};  // empty: `function` is meant
    port::ConstBytes content{};
    std::optional<TimePoint> deadline{};
    std::uint64_t max_response = std::uint64_t{64} << 20U;
    std::uint64_t unit = 1;  // the answer is a multiple of so many bytes,
    bool single = false;     // or just that

    std::vector<std::byte> response{};

    std::uint64_t size() const noexcept override { return content.size(); }
    std::span<const port::ConstBytes> regions() const noexcept override { return {&content, 1}; }
    std::size_t fill(std::uint64_t /*offset*/, port::Bytes /*out*/) noexcept override { return 0; }

    // The engine's own.
    enum class State : std::uint8_t {
        idle,
        waiting,  // for a link or room; nobody knows of it
        sent,     // the peer may know of it
        local,    // to this node itself
        ended,    // but for the memory, while `streaming`
    };
    State state = State::idle;
    Peer* peer = nullptr;
    std::uint64_t id = 0;
    bool streaming = false;    // the link reads `content`
    bool header_came = false;  // of the response
    port::StreamId stream{};
    CallPayload incoming{};
    InCall* local = nullptr;
    Hook<CallOperation> waiting_hook{};
};

/// A call that was made of this node, from its request to its answer and the end of its function.
struct InCall final : port::Source {
    Peer* peer = nullptr;  // nullptr: this node itself
    std::uint64_t id = 0;
    Function* function = nullptr;
    Rank caller{};
    std::optional<TimePoint> deadline{};
    std::vector<std::byte> argument{};
    void* owner = nullptr;  // of who took it by Calls::poll_call()

    // The engine's own.
    enum class State : std::uint8_t {
        arriving,   // its payload is not whole
        ready,      // for poll_call()
        running,    // until respond()
        answering,  // the link reads `response`
    };
    State state = State::arriving;
    bool answered = false;  // what the function says is not wanted
    bool stopping = false;  // for poll_stopped(), which
    bool told = false;      // tells it once
    std::uint64_t held = 0;
    CallPayload incoming{};
    CallOperation* local = nullptr;
    std::vector<std::byte> response{};
    port::ConstBytes shown{};
    Hook<InCall> hook{};  // of the ready ones, or of those to be stopped

    std::uint64_t size() const noexcept override { return response.size(); }
    std::span<const port::ConstBytes> regions() const noexcept override { return {&shown, 1}; }
    std::size_t fill(std::uint64_t /*offset*/, port::Bytes /*out*/) noexcept override { return 0; }
};

}  // namespace nexar::engine

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
#include "engine/out_stream.hpp"
#include "engine/payload_receiver.hpp"

namespace nexar::engine {

class CallOperation;
class Calls;
struct InCall;
struct Peer;

/// How large calls may be, and how much memory the calls of one peer may take here.
struct CallLimits {
    std::uint64_t max_request = std::uint64_t{64} << 20U;   // bytes
    std::uint64_t max_response = std::uint64_t{64} << 20U;  // bytes, of the functions served here
    /// Calls of one peer that are not answered, or whose function has not returned.
    std::size_t max_in_flight = 1024;
    /// Bytes of one peer's requests, and of responses to it that are not sent yet.
    std::uint64_t max_held = std::uint64_t{64} << 20U;
    /// Answers that one peer owes to callers that gave up; beyond, it is cut off.
    std::size_t max_owed = 65536;
    /// Frames that wait because a peer does not read; beyond, it is cut off.
    std::size_t max_backlog = 65536;
};

/// A function that this node serves. The caller of Calls::add() owns it and keeps it in place until
/// Calls::remove().
struct Function {
    std::uint16_t number = 0;
    std::string name{};                          // empty: it is called by its number
    std::optional<std::vector<Rank>> callers{};  // ranks that may call it; nullopt: all
    std::uint64_t max_request = std::uint64_t{64} << 20U;
    void* owner = nullptr;
};

/// The incoming payload of a call: the argument of `request`, or the answer to `response`. The
/// stream of an answer may arrive before the frame that says its size: then `bytes` is unknown, and
/// the stream waits.
struct CallPayload final : PayloadReceiver {
    Calls* calls = nullptr;
    InCall* request = nullptr;
    CallOperation* response = nullptr;
    bool on_stream = false;            // its frame has arrived and says so
    std::vector<std::byte> content{};  // takes memory as bytes arrive

    std::size_t write(std::uint64_t offset, port::ConstBytes from) noexcept override;
    void attached() override;
    void finished(std::uint64_t came) override;
    void aborted() override;
};

/// A call that this node makes. It ends with `response` or an error once no link reads `content`.
class CallOperation final : public Operation, public OutStream {
public:
    CallOperation() noexcept : Operation(Kind::call) {}

    // Set before start().
    Rank to{};
    std::uint16_t function = 0;
    std::string name{};  // empty: `function` says which
    port::ConstBytes content{};
    std::optional<TimePoint> deadline{};
    std::uint64_t max_response = std::uint64_t{64} << 20U;
    std::uint64_t unit = 1;  // the answer has a multiple of this many bytes,
    bool single = false;     // or exactly this many

    std::vector<std::byte> response{};

    std::uint64_t size() const noexcept override { return content.size(); }
    std::span<const port::ConstBytes> regions() const noexcept override { return {&content, 1}; }
    void released(port::SendOutcome outcome) override;

    // The engine's own.
    enum class State : std::uint8_t {
        idle,
        waiting,  // for a link or room; the peer does not know of it
        sent,     // the peer may know of it
        local,    // to this node itself
        ended,    // except that the link may still read `content`, see sending()
    };
    State state = State::idle;
    Peer* peer = nullptr;
    std::uint64_t id = 0;
    bool header_came = false;  // of the response
    CallPayload incoming{};
    InCall* local = nullptr;
    Hook<CallOperation> waiting_hook{};
};

/// A call of a function of this node, from its request to its answer and the end of the function.
struct InCall final : OutStream {
    Peer* peer = nullptr;  // nullptr: this node itself
    std::uint64_t id = 0;
    Function* function = nullptr;
    Rank caller{};
    std::optional<TimePoint> deadline{};
    std::vector<std::byte> argument{};
    void* owner = nullptr;  // for the caller of Calls::poll_call()

    // The engine's own.
    enum class State : std::uint8_t {
        arriving,   // its payload is not complete
        ready,      // for poll_call()
        running,    // until respond()
        answering,  // the link reads `response`
    };
    State state = State::arriving;
    bool answered = false;  // the result of the function is not wanted
    bool stopping = false;  // poll_stopped() will return it,
    bool told = false;      // which happens once
    std::uint64_t held = 0;
    CallPayload incoming{};
    CallOperation* local = nullptr;
    std::vector<std::byte> response{};
    port::ConstBytes shown{};
    Hook<InCall> hook{};  // in the list of the ready calls, or of those to be stopped

    std::uint64_t size() const noexcept override { return response.size(); }
    std::span<const port::ConstBytes> regions() const noexcept override { return {&shown, 1}; }
    void released(port::SendOutcome outcome) override;
};

}  // namespace nexar::engine

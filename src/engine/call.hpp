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

/// Limits on the size of calls, and on the memory that the calls of one peer may use here.
struct CallLimits {
    std::uint64_t max_request = std::uint64_t{64} << 20U;   // bytes
    std::uint64_t max_response = std::uint64_t{64} << 20U;  // bytes; for functions served here
    /// Calls from one peer that are unanswered or whose function has not returned.
    std::size_t max_in_flight = 1024;
    /// Bytes of requests from one peer and of unsent responses to it.
    std::uint64_t max_held = std::uint64_t{64} << 20U;
    /// Answers that one peer still owes to abandoned calls. A peer that owes more is disconnected.
    std::size_t max_owed = 65536;
    /// Frames queued for a peer that does not read. A peer with a larger backlog is disconnected.
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
/// stream of an answer may arrive before the frame that states its size; then `bytes` is unknown,
/// and the stream waits.
struct CallPayload final : PayloadReceiver {
    Calls* calls = nullptr;
    InCall* request = nullptr;
    CallOperation* response = nullptr;
    bool on_stream = false;            // as its frame says, once that has arrived
    std::vector<std::byte> content{};  // grows as bytes arrive

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
    Rank to{};                     // in the communicator,
    std::optional<NodeId> node{};  // or this node; then `to` is only its name in messages
    std::uint16_t function = 0;
    std::string name{};  // empty: `function` identifies it
    port::ConstBytes content{};
    std::optional<TimePoint> deadline{};
    std::uint64_t max_response = std::uint64_t{64} << 20U;
    std::uint64_t unit = 1;  // the answer's size must be a multiple of this,
    bool single = false;     // or exactly this

    std::vector<std::byte> response{};

    std::uint64_t size() const noexcept override { return content.size(); }
    std::span<const port::ConstBytes> regions() const noexcept override { return {&content, 1}; }
    void released(port::SendOutcome outcome) override;

    // Used by the engine only.
    enum class State : std::uint8_t {
        idle,
        waiting,  // for a link or for room; the peer does not know of the call
        sent,     // the peer may know of the call
        local,    // a call to this node itself
        ended,    // but the link may still read `content`, see sending()
    };
    State state = State::idle;
    Peer* peer = nullptr;
    std::uint64_t id = 0;
    bool header_came = false;  // the response header has arrived
    CallPayload incoming{};
    InCall* local = nullptr;
    Hook<CallOperation> waiting_hook{};
};

/// An incoming call of a function that this node serves. It exists until it is answered and the
/// function has returned.
struct InCall final : OutStream {
    Peer* peer = nullptr;  // nullptr: this node itself
    std::uint64_t id = 0;
    Function* function = nullptr;
    Rank caller{};
    std::optional<TimePoint> deadline{};
    std::vector<std::byte> argument{};
    void* owner = nullptr;  // free for use by the caller of Calls::poll_call()

    // Used by the engine only.
    enum class State : std::uint8_t {
        arriving,   // its payload is not complete
        ready,      // waits for poll_call()
        running,    // waits for respond()
        answering,  // the link reads `response`
    };
    State state = State::arriving;
    bool answered = false;  // the function's result is no longer needed
    bool stopping = false;  // poll_stopped() will return it
    bool told = false;      // it was queued for poll_stopped(), which returns it once
    std::uint64_t held = 0;
    CallPayload incoming{};
    CallOperation* local = nullptr;
    std::vector<std::byte> response{};
    port::ConstBytes shown{};
    Hook<InCall> hook{};  // in the list of ready or of stopped calls

    std::uint64_t size() const noexcept override { return response.size(); }
    std::span<const port::ConstBytes> regions() const noexcept override { return {&shown, 1}; }
    void released(port::SendOutcome outcome) override;
};

}  // namespace nexar::engine

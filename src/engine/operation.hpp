#pragma once

#include <cstdint>
#include <nexar/error.hpp>
#include <optional>
#include <span>
#include "base/types.hpp"

#include "base/time.hpp"
#include "engine/intrusive_list.hpp"
#include "engine/matcher.hpp"
#include "engine/out_stream.hpp"
#include "port/stream.hpp"

namespace nexar::engine {

class Messages;
struct Context;
struct InMessage;
struct Peer;

/// The source, tag and size of a message.
struct Envelope {
    Rank source{};
    Tag tag{};
    std::uint64_t bytes = 0;
};

/// An operation submitted to the engine. The caller owns it and must keep it, and the memory it
/// refers to, in place from start() until poll_done() returns it.
class Operation {
public:
    enum class Kind : std::uint8_t { send, receive, probe, call, collective, agreement };

    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    Kind kind() const noexcept { return kind_; }

    // Free for use by the caller.
    void* owner = nullptr;

    // Set by the engine, valid when the operation has ended.
    std::optional<Error> error{};
    Envelope envelope{};  // of the message that a receive or a probe found

    // Used by the engine only.
    Context* context = nullptr;
    bool active = false;
    bool internal = false;                    // started by the engine itself
    TimePoint give_up_at = TimePoint::max();  // set when it was cancelled and a peer knows of it
    Hook<Operation> done_hook{};

protected:
    explicit Operation(Kind kind) noexcept : kind_(kind) {}
    ~Operation() = default;

private:
    Kind kind_;
};

class SendOperation final : public Operation, public OutStream {
public:
    SendOperation() noexcept : Operation(Kind::send) {}

    // Set before start(). The caller owns the list of regions.
    Rank to{};
    Tag tag{};
    std::span<const port::ConstBytes> content{};
    port::Priority priority = port::Priority::bulk;
    bool synchronous = false;  // ends when the message is matched, not before

    std::uint64_t size() const noexcept override { return bytes; }
    std::span<const port::ConstBytes> regions() const noexcept override { return content; }
    void released(port::SendOutcome outcome) override;

    // Used by the engine only.
    enum class State : std::uint8_t {
        idle,
        waiting,    // for credit or room; the peer does not know of the message
        announced,  // its header was sent; waits for a grant
        streaming,  // the link reads its memory
        asking,     // the peer for the outcome of a message that was sent completely
        local,      // to this rank itself, not matched yet
        ended,
    };
    State state = State::idle;
    Messages* messages = nullptr;
    std::uint64_t bytes = 0;
    Sequence sequence{};
    bool payload_sent = false;  // with its header
    bool cancelling = false;
    std::optional<Error> reason{};  // its error once the link has let go of its memory
    InMessage* local_message = nullptr;
    Hook<SendOperation> hook{};  // in the list of its state: waiting, streaming or local
};

/// A receive, or a probe that takes its message out of matching and stores it in `message`.
class ReceiveOperation final : public Operation, public PostedReceive, public port::Sink {
public:
    ReceiveOperation() noexcept : Operation(Kind::receive) {}

    // Set before start(), with `pattern`. The caller owns the list of regions.
    std::span<const port::Bytes> content{};
    bool only_take = false;

    /// The message that was taken out of matching; the engine owns it. The caller must receive or
    /// drop it.
    InMessage* message = nullptr;

    // Used by the engine only.
    InMessage* matched = nullptr;  // the message whose payload goes to `content`

    std::uint64_t capacity() const noexcept;

    std::size_t write(std::uint64_t offset, port::ConstBytes bytes) noexcept override;
    port::Bytes region(std::uint64_t offset, std::size_t bytes) noexcept override;

private:
    // Where in `content` the last byte went: bytes arrive in order.
    std::size_t region_ = 0;
    std::uint64_t region_begin_ = 0;
};

/// Waits for a matching message and leaves it unreceived.
class ProbeOperation final : public Operation {
public:
    ProbeOperation() noexcept : Operation(Kind::probe) {}

    Pattern pattern{};

    // Used by the engine only.
    Hook<ProbeOperation> probe_hook{};
};

}  // namespace nexar::engine

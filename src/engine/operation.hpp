#pragma once

#include <cstdint>
#include <nexar/error.hpp>
#include <optional>
#include <span>
#include "base/types.hpp"

#include "base/time.hpp"
#include "engine/intrusive_list.hpp"
#include "engine/matcher.hpp"
#include "port/link.hpp"
#include "port/stream.hpp"

namespace nexar::engine {

struct Context;
struct InMessage;
struct Peer;

/// Who sent a message and what it is.
struct Envelope {
    Rank source{};
    Tag tag{};
    std::uint64_t bytes = 0;
};

/// Something that was asked of the engine. Belongs to whoever asked, and must stay where it is,
/// with the memory that it shows, from start() until the engine says by poll_done() that it ended.
class Operation {
public:
    enum class Kind : std::uint8_t { send, receive, probe, call, collective };

    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    Kind kind() const noexcept { return kind_; }

    // The caller's own.
    void* owner = nullptr;

    // Set by the engine, valid when it ended.
    std::optional<Error> error{};
    Envelope envelope{};  // of a receive and of a probe: what came

    // The engine's own.
    Context* context = nullptr;
    bool active = false;
    TimePoint give_up_at = TimePoint::max();  // when it was cancelled, and a peer knows of it
    Hook<Operation> done_hook{};

protected:
    explicit Operation(Kind kind) noexcept : kind_(kind) {}
    ~Operation() = default;

private:
    Kind kind_;
};

class SendOperation final : public Operation, public port::Source {
public:
    SendOperation() noexcept : Operation(Kind::send) {}

    // Set before start(). The list of regions stays the caller's.
    Rank to{};
    Tag tag{};
    std::span<const port::ConstBytes> content{};
    port::Priority priority = port::Priority::bulk;
    bool synchronous = false;  // ends when the message is matched, not before

    std::uint64_t size() const noexcept override { return bytes; }
    std::span<const port::ConstBytes> regions() const noexcept override { return content; }
    std::size_t fill(std::uint64_t /*offset*/, port::Bytes /*out*/) noexcept override { return 0; }

    // The engine's own.
    enum class State : std::uint8_t {
        idle,
        waiting,    // for credit or room; nobody knows of it
        announced,  // its header is out, a grant will come
        streaming,  // the link reads its memory
        asking,     // the peer, what became of a message that was sent whole
        local,      // to this rank itself, not matched yet
        ended,
    };
    State state = State::idle;
    std::uint64_t bytes = 0;
    Sequence sequence{};
    port::StreamId stream{};
    bool payload_sent = false;  // with its header
    bool cancelling = false;
    InMessage* local_message = nullptr;
    Hook<SendOperation> waiting_hook{};  // of a pair, or of the engine's local ones
};

/// A receive, or a probe that takes the message out of matching: then `message` has it.
class ReceiveOperation final : public Operation, public PostedReceive, public port::Sink {
public:
    ReceiveOperation() noexcept : Operation(Kind::receive) {}

    // Set before start(), with `pattern`. The list of regions stays the caller's.
    std::span<const port::Bytes> content{};
    bool only_take = false;

    /// What was taken out of matching; the engine's memory. Must be received.
    InMessage* message = nullptr;

    // The engine's own.
    InMessage* matched = nullptr;  // whose payload comes to `content`

    std::uint64_t capacity() const noexcept;

    std::size_t write(std::uint64_t offset, port::ConstBytes bytes) noexcept override;
    port::Bytes region(std::uint64_t offset, std::size_t bytes) noexcept override;

private:
    // Where in `content` the last byte went: bytes come in order.
    std::size_t region_ = 0;
    std::uint64_t region_begin_ = 0;
};

/// Waits for a message that fits, and leaves it where it is.
class ProbeOperation final : public Operation {
public:
    ProbeOperation() noexcept : Operation(Kind::probe) {}

    Pattern pattern{};

    // The engine's own.
    Hook<ProbeOperation> probe_hook{};
};

}  // namespace nexar::engine

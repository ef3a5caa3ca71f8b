#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nexar/error.hpp>
#include <optional>
#include <variant>
#include "base/types.hpp"

#include "base/buffer_pool.hpp"
#include "base/slab.hpp"
#include "engine/credit.hpp"
#include "engine/matcher.hpp"
#include "engine/operation.hpp"
#include "engine/payload_receiver.hpp"

namespace nexar::engine {

class Messages;

/// An incoming message, from its header to its last byte.
struct InMessage final : Arrived, PayloadReceiver {
    static constexpr std::size_t kMaxBlockBytes = 2048;
    using Small = std::array<std::byte, sizeof(PooledBuffer)>;

    // Not defaulted: value-initialization would zero every new message as a whole.
    InMessage() noexcept {}  // NOLINT(modernize-use-equals-default)

    Messages* messages = nullptr;
    Context* context = nullptr;
    Peer* peer = nullptr;  // nullptr: this rank itself
    ContextId context_id{};
    Sequence sequence{};
    bool bulk = false;          // its payload travels on a stream of its own
    bool awaits_grant = false;  // and only after a grant
    bool synchronous = false;   // the sender must learn of the match
    bool from_reserve = false;
    bool discard = false;            // the payload is no longer needed
    bool complete = false;           // the storage below has the whole payload
    std::optional<Error> failure{};  // why its payload will not arrive
    Amount charge{};

    // The payload, or its beginning, until a receive matches, in one of three places.
    std::size_t stored = 0;  // its capacity in bytes
    std::variant<Small, std::byte*, PooledBuffer> place{};
    std::uint64_t received = 0;

    SendOperation* local = nullptr;        // the send of an uncopied message to this rank
    ReceiveOperation* receiver = nullptr;  // once it was matched

    Hook<InMessage> peer_hook{};

    std::size_t write(std::uint64_t offset, port::ConstBytes from) noexcept override;
    port::Bytes region(std::uint64_t offset, std::size_t most) noexcept override;
    void attached() override;
    void finished(std::uint64_t came) override;
    void aborted() override;
};

inline Envelope envelope_of(const InMessage& message) noexcept {
    return {.source = message.source, .tag = message.tag, .bytes = message.bytes};
}

/// Allocates messages and memory for their payloads. Small payloads are in blocks of three sizes,
/// so they do not take a page each: a payload uses less than twice its size, or the smallest block.
class MessageStore {
public:
    explicit MessageStore(BufferPool& pool) : pool_(&pool) {}

    InMessage& make() { return messages_.make(); }

    /// Gives `message` memory for the first `bytes` of its payload. Fails with Errc::out_of_memory.
    Result<void> reserve(InMessage& message, std::size_t bytes);
    static port::Bytes storage(InMessage& message) noexcept;

    void end(InMessage& message) noexcept;

    std::size_t messages() const noexcept { return messages_.used(); }
    /// Memory in use and kept for later messages, not counting the pool.
    std::size_t held_bytes() const noexcept;

private:
    BufferPool* pool_;
    Slab<InMessage> messages_;
    template <std::size_t Bytes>
    using Blocks = Slab<std::array<std::byte, Bytes>>;
    Blocks<512> small_;
    Blocks<1024> medium_;
    Blocks<InMessage::kMaxBlockBytes> large_;
};

}  // namespace nexar::engine

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

namespace nexar::engine {

class InBulk;

/// A message on its way in, from its header to its last byte.
struct InMessage : Arrived {
    static constexpr std::size_t kMaxBlockBytes = 2048;
    using Small = std::array<std::byte, sizeof(PooledBuffer)>;

    Context* context = nullptr;
    Peer* peer = nullptr;  // nullptr: this rank itself
    ContextId context_id{};
    Sequence sequence{};
    std::uint64_t bytes = 0;
    bool bulk = false;          // its payload comes on a stream of its own
    bool awaits_grant = false;  // and only after a grant
    bool synchronous = false;   // the sender is to be told of the match
    bool from_reserve = false;
    bool discard = false;            // nobody wants the payload any more
    bool direct = false;             // its payload goes straight to the receiver
    bool complete = false;           // the payload stands in the storage below
    std::optional<Error> failure{};  // its payload will not come
    Amount charge{};

    // The payload, or its beginning, that nobody had asked for yet, in one of three places.
    std::size_t stored = 0;  // room there
    std::variant<Small, std::byte*, PooledBuffer> place{};
    std::uint64_t received = 0;

    InBulk* stream = nullptr;              // of a bulk message, when it was opened
    SendOperation* local = nullptr;        // of a message to oneself that was not copied
    ReceiveOperation* receiver = nullptr;  // when it was matched

    Hook<InMessage> peer_hook{};
};

inline Envelope envelope_of(const InMessage& message) noexcept {
    return {.source = message.source, .tag = message.tag, .bytes = message.bytes};
}

/// Where messages and their payloads are kept; of one engine. Small payloads are in blocks of three
/// sizes, so that the credit for many of them is not many pages: what a payload takes is less than
/// twice its size, but for the smallest block.
class MessageStore {
public:
    explicit MessageStore(BufferPool& pool) : pool_(&pool) {}

    InMessage& make() { return messages_.make(); }

    /// Memory for the first `bytes` of the payload, in `message`. Fails with Errc::out_of_memory.
    Result<void> reserve(InMessage& message, std::size_t bytes);
    static port::Bytes storage(InMessage& message) noexcept;

    void end(InMessage& message) noexcept;

    std::size_t messages() const noexcept { return messages_.used(); }
    /// Memory that is held beside the pool's, for messages in use and for later ones.
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

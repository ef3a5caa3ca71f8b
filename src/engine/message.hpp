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

    // Not defaulted: then every new message would first be filled with zeros as a whole.
    InMessage() noexcept {}  // NOLINT(modernize-use-equals-default)

    Messages* messages = nullptr;
    Context* context = nullptr;
    Peer* peer = nullptr;  // nullptr: this rank itself
    ContextId context_id{};
    Sequence sequence{};
    bool bulk = false;          // its payload travels on a stream of its own
    bool awaits_grant = false;  // and only after a grant
    bool synchronous = false;   // the sender must hear of the match
    bool from_reserve = false;
    bool discard = false;            // nobody wants the payload any more
    bool complete = false;           // the storage below has the whole payload
    std::optional<Error> failure{};  // why its payload will not arrive
    Amount charge{};

    // The payload, or its beginning, while no receive matches it, in one of three places.
    std::size_t stored = 0;  // bytes that fit there
    std::variant<Small, std::byte*, PooledBuffer> place{};
    std::uint64_t received = 0;

    SendOperation* local = nullptr;        // the send of a message to this rank, if not copied
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

/// Memory for the messages of one engine and their payloads. Small payloads are in blocks of three
/// sizes, so that many of them do not take a page each: a payload takes less than twice its size,
/// or the smallest block.
class MessageStore {
public:
    explicit MessageStore(BufferPool& pool) : pool_(&pool) {}

    InMessage& make() { return messages_.make(); }

    /// Memory for the first `bytes` of the payload, in `message`. Fails with Errc::out_of_memory.
    Result<void> reserve(InMessage& message, std::size_t bytes);
    static port::Bytes storage(InMessage& message) noexcept;

    void end(InMessage& message) noexcept;

    std::size_t messages() const noexcept { return messages_.used(); }
    /// Memory in use and kept for later messages, without the pool's.
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

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/message.hpp"
#include "port/link.hpp"
#include "port/stream.hpp"
#include "wire/limits.hpp"

namespace nexar::engine {

struct CallPayload;
struct CollectiveIn;
struct Pair;
struct Peer;

/// A payload stream of a peer: first the preamble, which names the message; then the payload, which
/// waits for the message's header and then for its receive. Until there is one, its beginning is
/// kept with the message.
class InBulk final : public port::Sink {
public:
    /// What must be known of a stream as its bytes come.
    class Owner {
    public:
        virtual ~Owner() = default;
        /// The preamble is whole. May set `message`.
        virtual void named(InBulk& stream, port::ConstBytes preamble) = 0;
        /// More bytes came than the header said.
        virtual void overran(InBulk& stream) = 0;
    };

    InBulk(Owner& owner, Peer& peer, port::StreamId id) noexcept
        : peer_(&peer), id_(id), owner_(&owner) {}

    Peer& peer() const noexcept { return *peer_; }
    port::StreamId id() const noexcept { return id_; }

    InMessage* message = nullptr;
    bool refused = false;
    bool early = false;  // its message, or call, is not known yet
    // Of a call, see Calls; then there is no message.
    bool of_call = false;
    CallPayload* call_payload = nullptr;
    // Of a collective, see CollectiveRunner.
    bool of_collective = false;
    CollectiveIn* collective = nullptr;
    Pair* early_in = nullptr;  // where it waits for its header
    /// What had arrived when the link went down, and where it begins: the engine offers it to
    /// whoever wants it, as the link would have done.
    std::optional<port::Rest> rest{};
    std::size_t rest_taken = 0;

    std::size_t write(std::uint64_t offset, port::ConstBytes bytes) noexcept override;
    port::Bytes region(std::uint64_t offset, std::size_t bytes) noexcept override;

private:
    std::size_t write_content(std::uint64_t offset, port::ConstBytes bytes) noexcept;
    std::size_t write_call(port::ConstBytes bytes) noexcept;

    Peer* peer_;
    port::StreamId id_;
    Owner* owner_;
    std::array<std::byte, wire::kBulkPreambleBytes> preamble_{};
};

}  // namespace nexar::engine

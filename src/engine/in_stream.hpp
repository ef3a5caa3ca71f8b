#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/payload_receiver.hpp"
#include "engine/transfer_name.hpp"
#include "port/link.hpp"
#include "port/stream.hpp"
#include "wire/limits.hpp"

namespace nexar::engine {

class PeerTransfers;
struct PeerLink;

/// A payload stream from a peer: first the preamble, which names the payload, then the payload. Its
/// bytes wait in the link until a receiver is attached and takes them.
class InStream final : public port::Sink {
public:
    InStream(PeerTransfers& transfers, PeerLink& link, port::StreamId id) noexcept
        : transfers_(&transfers), link_(&link), id_(id) {}

    port::StreamId id() const noexcept { return id_; }
    PeerTransfers& transfers() const noexcept { return *transfers_; }
    /// Set when the preamble has arrived.
    const std::optional<TransferName>& name() const noexcept { return name_; }
    PayloadReceiver* receiver() const noexcept { return receiver_; }
    bool refused() const noexcept { return refused_; }
    /// True when the link is down and this object holds the bytes that the receiver has not taken.
    bool has_rest() const noexcept { return rest_.has_value(); }

    /// Called when the receiver can take bytes: lets the peer send all of them.
    void open();
    /// Called when the receiver can take more of the bytes that the peer may already send.
    void wake();
    /// Drops the rest of the payload and tells the peer to stop. The receiver's aborted() follows,
    /// or its finished() if it had taken all bytes.
    void refuse();
    /// Drops the rest of the payload without telling the peer: the payload was complete for its
    /// receiver and must not look refused to its sender.
    void ignore() noexcept { refused_ = true; }

    std::size_t write(std::uint64_t offset, port::ConstBytes bytes) noexcept override;
    port::Bytes region(std::uint64_t offset, std::size_t bytes) noexcept override;

private:
    friend class PeerTransfers;
    friend class PayloadReceiver;

    std::size_t write_payload(std::uint64_t offset, port::ConstBytes bytes) noexcept;

    PeerTransfers* transfers_;
    PeerLink* link_;  // nullptr when it is down
    port::StreamId id_;
    std::optional<TransferName> name_{};
    std::uint16_t attempt_ = 0;  // see wire::Preamble
    PayloadReceiver* receiver_ = nullptr;
    bool refused_ = false;
    bool early_ = false;  // its header has not arrived, see PeerTransfers::early_
    std::optional<port::Rest> rest_{};
    std::uint64_t rest_number_ = 0;  // see PeerTransfers::rests_
    std::size_t rest_taken_ = 0;
    std::array<std::byte, wire::kBulkPreambleBytes> preamble_{};
};

}  // namespace nexar::engine

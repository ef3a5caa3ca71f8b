#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <nexar/error.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/assert.hpp"
#include "base/recorder.hpp"
#include "engine/in_stream.hpp"
#include "engine/lane_reader.hpp"
#include "engine/out_stream.hpp"
#include "engine/transfer_name.hpp"
#include "engine/transfers.hpp"
#include "port/link.hpp"
#include "wire/codec.hpp"
#include "wire/frame.hpp"
#include "wire/limits.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

/// Room for a frame that is written as it is, without text of any length.
template <class Message>
inline constexpr std::size_t kMostFrameBytes = wire::kMaxCallFrameBytes;
template <>
inline constexpr std::size_t kMostFrameBytes<wire::EagerHeader> = wire::kMessageHeaderFrameBytes;
template <>
inline constexpr std::size_t kMostFrameBytes<wire::BulkHeader> = wire::kMessageHeaderFrameBytes;
template <>
inline constexpr std::size_t kMostFrameBytes<wire::CollectiveHeader> =
    wire::kCollectiveHeaderFrameBytes;

/// The transfers between this node and one peer: its link, the lanes and their backlogs, and the
/// payload streams in both directions. See Transfers.
class PeerTransfers final : private LaneReader::Taker {
public:
    PeerTransfers(Transfers& all, Peer& peer);
    PeerTransfers(const PeerTransfers&) = delete;
    PeerTransfers& operator=(const PeerTransfers&) = delete;

    Peer& peer() const noexcept { return *peer_; }

    // The link.
    bool up() const noexcept { return link_ != nullptr; }
    /// The link is up and is not being closed for a violation: what is sent now may arrive.
    bool usable() const noexcept { return link_ != nullptr && !violation_; }
    /// How the peer violated the protocol, if it did. What it sends is then ignored, and Down will
    /// follow.
    const std::optional<Error>& violation() const noexcept { return violation_; }
    /// Takes a link over. `control` already reads its control lane if the handshake is complete,
    /// else it is nullptr.
    void connect(port::Link& link, std::unique_ptr<LaneReader> control);
    /// Disconnects a peer that violates the protocol or exceeds a limit. Only the first call has an
    /// effect.
    void cut_off(const Error& error);
    void close(std::string_view reason);

    // Lanes.
    bool full(port::Lane lane) const noexcept { return out(lane).full; }
    /// Writes a frame and the payload behind it, all or nothing. Returns false if the lane is full;
    /// then Transfers::Owner::on_writable() follows. Requires a link.
    bool write(port::Lane lane, port::ConstBytes frame,
               std::span<const port::ConstBytes> payload = {});
    template <class Message>
    bool write_message(port::Lane lane, const Message& message,
                       std::span<const port::ConstBytes> payload = {});
    /// Writes a frame now, or queues it until the lane has room; keeps the order of calls. Drops
    /// the frame if the link is no longer usable.
    void say(port::Lane lane, std::vector<std::byte> frame);
    template <class Message>
    void say_message(port::Lane lane, const Message& message) {
        if (usable()) say(lane, wire::to_bytes(message));
    }
    /// Frames queued by say() and not written yet, and their bytes.
    std::size_t backlog(port::Lane lane) const noexcept { return out(lane).backlog.size(); }
    std::uint64_t backlog_bytes(port::Lane lane) const noexcept { return out(lane).backlog_bytes; }
    /// If `receiver` is taking a payload on this lane, the rest of the payload is dropped.
    void skip(port::Lane lane, const PayloadReceiver& receiver) noexcept;

    // Payload streams.
    /// Starts to send a payload; requires a link. `out.released()` follows.
    void send(OutStream& out, const TransferName& name, port::Priority priority);
    /// Called when the header of a payload that has its own stream arrives: attaches the stream to
    /// `receiver` if it arrived early.
    void expect(const TransferName& name, PayloadReceiver& receiver);
    /// True when the stream of a payload has arrived and its header has not.
    bool is_early(const TransferName& name) const { return early_.contains(name); }
    bool has_early() const noexcept { return !early_.empty(); }
    /// Refuses the stream that waits for the header of this name, if there is one: the header will
    /// not arrive, or the payload is not needed.
    void refuse_early(const TransferName& name);
    /// The same for all names of one kind in one communicator.
    void refuse_early(TransferKind kind, ContextId context);
    /// The Error for a peer that sent one payload on two streams, or on a stream and a lane.
    static Error sent_twice(TransferKind kind);
    void offer_rests() { all_->offer_rests(); }
    /// Disconnects the peer if a payload did not have as many bytes as its header said.
    void check_whole(std::uint64_t announced, std::uint64_t came);

private:
    friend class InStream;
    friend class OutStream;
    friend class Transfers;

    /// A lane towards the peer.
    struct LaneOut {
        bool full = false;
        std::deque<std::vector<std::byte>> backlog{};
        std::uint64_t backlog_bytes = 0;
    };

    LaneOut& out(port::Lane lane) noexcept { return lanes_[static_cast<std::size_t>(lane)]; }
    const LaneOut& out(port::Lane lane) const noexcept {
        return lanes_[static_cast<std::size_t>(lane)];
    }

    bool write_pieces(port::Lane lane, port::ConstBytes frame,
                      std::span<const port::ConstBytes> payload);

    // For the lane readers.
    Result<LanePayload> frame(const wire::FrameHeader& header, port::ConstBytes body) override;
    Result<LanePayload> take(const wire::FrameHeader& header, port::ConstBytes body);
    void violated(const Error& error) override { cut_off(error); }

    // For InStream and OutStream.
    void named(InStream& stream);
    Result<void> place(InStream& stream);
    void attach(InStream& stream, PayloadReceiver& receiver);
    void open(InStream& stream);
    void wake(InStream& stream);
    void refuse(InStream& stream);

    // Events of the link, passed on by Transfers.
    void on_opened(port::StreamId id);
    void on_finished(const port::Finished& finished);
    void on_aborted(port::StreamId id);
    void on_released(const port::Released& released);
    void on_writable(port::Lane lane);
    void on_down(const port::Down& down);
    void offer_rest(port::StreamId id);
    PayloadReceiver* forget(InStream& stream);

    Transfers* all_;
    Peer* peer_;
    port::Link* link_ = nullptr;  // while it is up
    std::optional<Error> violation_{};
    std::array<LaneOut, port::kLanes> lanes_{};

    // Made with the link.
    std::array<std::unique_ptr<LaneReader>, port::kLanes> readers_{};

    std::unordered_map<std::uint64_t, OutStream*> streams_out_{};
    std::unordered_map<std::uint64_t, std::unique_ptr<InStream>> streams_in_{};
    /// Streams whose header has not arrived.
    std::unordered_map<TransferName, InStream*, TransferNameHash> early_;
};

/// Why an unwritten message to a peer waits.
inline WaitReason wait_reason(const PeerTransfers& transfers) noexcept {
    if (!transfers.up()) return WaitReason::link;
    return transfers.full(port::Lane::eager) ? WaitReason::room : WaitReason::credit;
}

template <class Message>
bool PeerTransfers::write_message(port::Lane lane, const Message& message,
                                  std::span<const port::ConstBytes> payload) {
    std::array<std::byte, kMostFrameBytes<Message>> frame{};
    const auto size = wire::encode(message, std::span(frame));
    NEXAR_ASSERT(size.has_value());
    return write(lane, std::span(frame).first(*size), payload);
}

}  // namespace nexar::engine

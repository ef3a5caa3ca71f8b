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
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/assert.hpp"
#include "base/recorder.hpp"
#include "engine/in_stream.hpp"
#include "engine/lane_reader.hpp"
#include "engine/lane_tail.hpp"
#include "engine/out_stream.hpp"
#include "engine/peer_link.hpp"
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

/// The transfers between this node and one peer: its links, the lanes and their backlogs, and the
/// payload streams in both directions. See Transfers.
///
/// A lane is on one link at a time, and a payload stream stays on the link on which it was opened.
/// A link that breaks while the peer has another one loses nothing: what the peer's link did not
/// acknowledge is sent again, and the peer skips what it has.
class PeerTransfers final : private LaneReader::Taker {
public:
    PeerTransfers(Transfers& all, Peer& peer);
    PeerTransfers(const PeerTransfers&) = delete;
    PeerTransfers& operator=(const PeerTransfers&) = delete;

    Peer& peer() const noexcept { return *peer_; }

    // Links.
    /// The most links that a peer may have.
    static constexpr std::size_t kMaxLinks = 8;

    bool up() const noexcept { return !links_.empty() && !gone_; }
    /// A link is up, and none is being closed for a violation: what is sent now may arrive.
    bool usable() const noexcept { return up() && !violation_; }
    /// See port::LinkSpeed.
    std::size_t eager_bytes() const noexcept {
        const PeerLink* const link = out(port::Lane::eager).on;
        return link == nullptr ? 0 : link->eager_bytes;
    }
    /// True if others relay everything between this node and the peer.
    bool in_tunnel() const noexcept;
    /// True if the peer has everything that was written so far, as far as the links can tell.
    bool settled() const noexcept;
    bool heard_since(TimePoint since) const noexcept;
    /// False when all links are down. A peer that is gone has links until they are closed.
    bool has_links() const noexcept { return !links_.empty(); }
    /// True while a link, or a stream whose receiver outlives its link, refers to this object.
    bool in_use() const noexcept {
        return has_links() || !rests_.empty() || all_->refers_to(*this);
    }
    std::span<const std::unique_ptr<PeerLink>> links() const noexcept { return links_; }
    /// True when the peer had links and can have none any more.
    bool over() const noexcept { return gone_ || ended_; }
    /// True while a peer without usable links still waits for a link to let go of memory.
    bool ending() const noexcept { return gone_ && !ended_; }
    /// How the peer violated the protocol, if it did. What it sends is then ignored, and Down will
    /// follow.
    const std::optional<Error>& violation() const noexcept { return violation_; }
    /// Takes a link over. If the handshake of the first link is complete, `control` reads its
    /// control lane, to which `control_bytes` were written after the preamble.
    void connect(port::Link& link, std::unique_ptr<LaneReader> control = nullptr,
                 std::uint64_t control_bytes = 0);
    /// Says that the peer has this link too; it is then used if it is the best. A further link is
    /// only read before that, unless no other is left. Returns false if this side does not have it.
    bool use(port::LinkId link);
    /// Moves the lanes to this link, and opens streams on it from now on, whatever its speed is.
    /// Returns false if the peer does not have the link.
    bool prefer(port::LinkId link);
    /// Disconnects a peer that violates the protocol or exceeds a limit. Only the first call has an
    /// effect.
    void cut_off(const Error& error);
    void close(std::string_view reason);
    /// Ends all links at once. Nothing that arrives later is delivered; Owner::on_down() follows
    /// when the links have let go of all memory, which may be at once. Requires a link.
    void sever(const Error& reason);
    /// Shares memory with the peer over a link that can; false if there is none.
    bool share(std::uint64_t name, const std::shared_ptr<port::SharedMemory>& memory);
    /// Wakes the peer if it sleeps and may wait for something in shared memory.
    void nudge() const noexcept;

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
        if (!usable()) return;
        if constexpr (std::is_same_v<Message, wire::Credit>) {
            // Frequent, so it allocates nothing if there is room.
            if (out(lane).backlog.empty() && write_message(lane, message)) return;
        }
        say(lane, wire::to_bytes(message));
    }
    /// Frames queued by say() and not written yet, and their bytes.
    std::size_t backlog(port::Lane lane) const noexcept { return out(lane).backlog.size(); }
    std::uint64_t backlog_bytes(port::Lane lane) const noexcept { return out(lane).backlog_bytes; }
    /// If `receiver` is taking a payload on this lane, the rest of the payload is dropped.
    void skip(port::Lane lane, const PayloadReceiver& receiver) noexcept;

    /// Inside Transfers::Owner::on_frame(): see FrameReader::Taker.
    using LaneReader::Taker::behind_frame;

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
    friend class LaneTailIn;
    friend class LaneTailOut;
    friend class OutStream;
    friend class Transfers;

    /// A lane towards the peer.
    struct LaneOut {
        bool full = false;
        PeerLink* on = nullptr;
        std::uint64_t position = 0;  // bytes written so far, on all links and without preambles
        PeerLink* next = nullptr;    // to be moved there when there is room for the Moved frame
        bool preamble_due = false;   // the link had no room for it
        std::deque<std::vector<std::byte>> backlog{};
        std::uint64_t backlog_bytes = 0;
    };
    /// Bytes of a lane that arrived on a link that is down and that wait for earlier ones.
    struct Untaken {
        port::Lane lane{};
        std::unique_ptr<LaneReader> reader{};
        std::vector<std::byte> bytes{};
        std::size_t taken = 0;
    };

    LaneOut& out(port::Lane lane) noexcept { return lanes_[static_cast<std::size_t>(lane)]; }
    const LaneOut& out(port::Lane lane) const noexcept {
        return lanes_[static_cast<std::size_t>(lane)];
    }
    FrameReader& frames(port::Lane lane) noexcept {
        return *frames_[static_cast<std::size_t>(lane)];
    }

    // peer_lanes.cpp
    bool put(LaneOut& to, port::Lane lane, std::span<const port::ConstBytes> pieces,
             std::uint64_t bytes);
    bool put_gathered(LaneOut& to, port::Lane lane, port::ConstBytes frame,
                      std::span<const port::ConstBytes> payload);
    void begin_lanes(PeerLink& here, std::unique_ptr<LaneReader> control,
                     std::uint64_t control_bytes);
    void move(port::Lane lane, PeerLink& to);
    void try_move(port::Lane lane);
    void begin_part(port::Lane lane, PeerLink& to);
    void write_preamble(port::Lane lane);
    void on_writable(const PeerLink& link, port::Lane lane);
    void write_backlog(port::Lane lane);
    void resume(const PeerLink& broken, port::Lane lane, const port::LaneBytes& unconfirmed);
    void advanced(port::Lane lane);
    void advance_once(port::Lane lane);
    // For the lane readers.
    std::size_t take_at_once(port::ConstBytes bytes) override;
    Result<LanePayload> frame(const wire::FrameHeader& header, port::ConstBytes body) override;
    Result<LanePayload> take(const wire::FrameHeader& header, port::ConstBytes body);
    void violated(const Error& error) override { cut_off(error); }
    void advanced(wire::Lane lane) override;

    // peer_streams.cpp
    void begin(OutStream& out);
    void finish(OutStream& out, port::SendOutcome outcome);
    void named(InStream& stream);
    Result<void> place(InStream& stream);
    static Result<bool> supersede(InStream& stream, InStream& known, TransferKind kind);
    Result<void> place_early(InStream& stream, const TransferName& name);
    Result<Awaited> look_up_tail(const TransferName& name);
    Result<void> attach_or_replace(InStream& stream, PayloadReceiver& receiver, TransferKind kind);
    void attach(InStream& stream, PayloadReceiver& receiver);
    void open(InStream& stream);
    void wake(InStream& stream);
    void refuse(InStream& stream);
    void on_opened(PeerLink& link, port::StreamId id);
    void on_finished(PeerLink& link, const port::Finished& finished);
    void on_aborted(PeerLink& link, port::StreamId id);
    void on_released(PeerLink& link, const port::Released& released);
    void on_datagram(port::ConstBytes bytes);
    void finished(InStream& stream, std::uint64_t bytes);
    void aborted(InStream& stream);
    void offer_rest(std::uint64_t number);
    PayloadReceiver* forget(InStream& stream);

    // peer_transfers.cpp
    PeerLink* find(port::LinkId link) const noexcept;
    /// A link to use where any will do.
    PeerLink& any_link() const noexcept;
    void choose();
    void on_down(PeerLink& link, const port::Down& down);
    static std::vector<PayloadReceiver*> complete_receivers(const PeerLink& here);
    void detach_streams(PeerLink& here, const port::Down& down, bool survives);
    void carry_on(PeerLink& here, const port::Down& down, const std::vector<OutStream*>& unsent);
    void abandon_links(const Error& reason, bool at_once = false);
    void end_when_released();
    void end(const Error& reason);

    Transfers* all_;
    Peer* peer_;
    std::vector<std::unique_ptr<PeerLink>> links_{};  // that are up
    PeerLink* streams_on_ = nullptr;                  // opens new streams
    PeerLink* preferred_ = nullptr;
    std::optional<Error> violation_{};
    bool closed_ = false;          // by this side
    std::optional<Error> gone_{};  // the peer's process has ended, and this side closes other links
    bool ended_ = false;           // the owner knows that the peer is lost
    std::array<LaneOut, port::kLanes> lanes_{};
    std::array<std::unique_ptr<FrameReader>, port::kLanes> frames_{};  // made with the first link
    std::vector<Untaken> untaken_{};
    bool advancing_ = false;
    bool advanced_again_ = false;
    std::vector<std::unique_ptr<LaneTailOut>> tails_out_{};
    std::vector<std::unique_ptr<LaneTailIn>> tails_in_{};
    /// Streams of links that are down, whose bytes the receiver has not taken yet.
    std::unordered_map<std::uint64_t, std::unique_ptr<InStream>> rests_{};
    std::uint64_t next_rest_ = 0;
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

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <nexar/result.hpp>
#include <unordered_map>
#include <utility>

#include "engine/lane_reader.hpp"
#include "engine/transfer_name.hpp"
#include "port/link.hpp"
#include "wire/frame.hpp"

namespace nexar::engine {

class PayloadReceiver;
class PeerTransfers;
struct Peer;
struct PeerLink;

/// What the owner of a payload knows of it when its stream has named it.
struct Awaited {
    enum class State : std::uint8_t {
        not_yet,  // its header has not arrived: the stream waits for it
        over,     // it is no longer needed: the stream is refused
        known,    // `receiver` takes it
    };
    State state = State::not_yet;
    PayloadReceiver* receiver = nullptr;
};

/// Everything that travels between this node and its peers, on any link: frames and the payloads
/// behind them on lanes, and payloads on streams of their own. Only this class and PeerTransfers,
/// its part for one peer, use port::Link, except that the Mesh uses a link before it hands it over.
///
/// Messages, calls and collectives see frames, PayloadReceiver and OutStream. They do not see which
/// link carries what; that is decided here.
class Transfers {
public:
    /// Dispatches what arrives. Its functions may start and end anything except links.
    class Owner {
    public:
        virtual ~Owner() = default;
        /// Handles a whole frame that is allowed on its lane. Returns the payload that follows it.
        /// An Error disconnects the peer.
        virtual Result<LanePayload> on_frame(Peer& peer, const wire::FrameHeader& header,
                                             port::ConstBytes body) = 0;
        /// May handle the frame at the front of `bytes`, and its payload behind it, if it is a
        /// message that somebody waits for. Returns how many bytes it took, or 0.
        virtual std::size_t on_eager(Peer& /*peer*/, port::ConstBytes /*bytes*/) { return 0; }
        /// Finds the receiver of a stream's payload. An Error disconnects the peer.
        virtual Result<Awaited> look_up(Peer& peer, const TransferName& name) = 0;
        /// A lane that was full has room again, and the frames that waited for it were written.
        virtual void on_writable(Peer& peer, port::Lane lane) = 0;
        /// The peer shared memory with this node.
        virtual void on_shared(Peer& /*peer*/, const port::Shared& /*shared*/) {}
        /// A datagram of the peer. An Error disconnects it.
        virtual Result<void> on_datagram(Peer& /*peer*/, port::ConstBytes /*bytes*/) { return {}; }
        /// A link that neither this side closed nor a violation ended is down; others may be up.
        virtual void on_link_down(Peer& /*peer*/, const port::Down& /*down*/) {}
        /// The host of the peer refused a packet.
        virtual void on_refused(Peer& /*peer*/) {}
        virtual void on_stalled(Peer& /*peer*/, bool /*stalled*/) {}
        /// All links are down or useless, and every OutStream was released. No receiver has a
        /// stream, except those that outlive their link.
        virtual void on_down(Peer& peer, const Error& reason) = 0;
    };

    struct Limits {
        /// Frames per lane queued for a peer that does not read. A peer with a larger backlog is
        /// disconnected.
        std::array<std::size_t, port::kLanes> max_backlog{65536, 65536, 65536};
        std::uint64_t hash_seed = 0;
    };

    Transfers(Owner& owner, const Limits& limits) noexcept : owner_(&owner), limits_(limits) {}
    Transfers(const Transfers&) = delete;
    Transfers& operator=(const Transfers&) = delete;

    const Limits& limits() const noexcept { return limits_; }

    /// Handles any event except Up. Ignores events of links that no peer has.
    void handle(const port::LinkEvent& event);

    /// Offers receivers the bytes that had arrived on links that are down. A step of a collective
    /// may wait for them, so this must follow everything that may let a step progress (user calls,
    /// events, frames, time), when no step is running. Stream bytes need no such call, because
    /// Finished follows the last of them.
    void offer_rests() {
        if (!rests_due_.empty()) [[unlikely]] {
            offer_due_rests();
        }
    }

private:
    friend class PeerTransfers;

    void offer_due_rests();
    bool refers_to(const PeerTransfers& peer) const noexcept;

    Owner* owner_;
    Limits limits_;
    std::unordered_map<port::LinkId, PeerLink*> by_link_;
    /// Streams with a rest that their receiver may be able to take, or has refused.
    std::deque<std::pair<PeerTransfers*, std::uint64_t>> rests_due_;
};

}  // namespace nexar::engine

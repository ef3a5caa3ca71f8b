#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/error.hpp>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/address.hpp"
#include "base/identity.hpp"
#include "base/time.hpp"
#include "port/dial.hpp"
#include "port/link_event.hpp"
#include "port/shared_memory.hpp"
#include "port/stream.hpp"
#include "port/tunnel.hpp"

namespace nexar::security {
class Credentials;  // the port only passes them on; security/credentials.hpp defines them
}

/// docs/links.md has the same contract as a table, with the tests that check each row.
namespace nexar::port {

/// Options of one payload stream.
struct StreamOptions {
    Priority priority = Priority::bulk;
    /// Precedes the content. The link copies it. At most kMaxPrefixBytes.
    ConstBytes prefix{};
};
inline constexpr std::size_t kMaxPrefixBytes = 64;

/// What a kind of link can do on this machine, as an estimate: a pair uses the link with the lowest
/// latency for its lanes and the one with the highest bandwidth for payload streams.
struct LinkSpeed {
    Duration latency = std::chrono::microseconds(10);
    double bytes_per_second = 1e9;
    /// Messages up to this size travel on a lane even if the engine would open a stream for them:
    /// the link copies so fast that the stream would cost more.
    std::size_t eager_bytes = 0;
};

/// A connection to one authenticated peer.
///
/// Calls only enqueue: they neither block nor call back, so a Sink or a Source may make them. Their
/// results arrive as LinkEvents. After Down they do
/// nothing. Only the thread that drives the
/// carrier may call.
///
/// Functions with a body here are optional: the body is the answer of a kind of link that does not
/// have the feature.
class Link {
public:
    virtual ~Link() = default;

    virtual LinkId id() const noexcept = 0;

    /// From the peer's certificate; valid from Up on.
    virtual const Identity& peer() const noexcept = 0;

    /// The name of its kind in the table of kinds; the same for all links of a carrier.
    virtual std::string_view kind() const noexcept { return "unnamed"; }

    /// Constant from Up on.
    virtual LinkSpeed speed() const noexcept { return {}; }

    /// Where the peer's packets come from. Address{} for a kind without addresses.
    virtual Address remote() const noexcept { return {}; }

    /// When something last arrived from the peer. TimePoint::max() for a kind that reports Down as
    /// soon as the peer is gone.
    virtual TimePoint heard_at() const noexcept { return TimePoint::max(); }

    /// Fills `out` with keying material that only the two ends of this link know (RFC 5705, RFC
    /// 8446 section 7.5, with an empty context): a signature over it cannot be replayed on another
    /// link. Valid from Up on; Errc::unsupported for a kind whose links cannot carry a join.
    virtual Result<void> export_key(std::string_view /*label*/, Bytes /*out*/) const {
        return Error(Errc::unsupported, "links of this kind have no keying material to export");
    }

    /// The CA certificate, in DER form, that a seed showed to a dialer of a JoinTarget. Empty
    /// otherwise.
    virtual ConstBytes peer_ca() const noexcept { return {}; }

    /// Appends the pieces, in order, to a lane; copies them. All or nothing: returns false when the
    /// lane's queue does not have room for all of them; Writable follows. Also returns false when
    /// the link has ended and only its Down has not been polled, so that no byte is lost that
    /// Down::unconfirmed does not have.
    virtual bool write(Lane lane, std::span<const ConstBytes> pieces) = 0;

    /// Starts a payload stream. Released follows exactly once.
    virtual StreamId send(Source& source, const StreamOptions& options) = 0;

    /// Tells the link that a source that had no bytes now has some.
    virtual void wake_source(StreamId stream) = 0;

    /// Cancels a stream that was not released yet. The next Carrier::flush() releases it, whether
    /// or not the peer answers or the socket takes packets: a cancelled stream is never sent again,
    /// so nobody reads its memory. Packets that have left are copies.
    virtual void cancel(StreamId stream) = 0;

    /// Sets the sink of a lane, which also gets the bytes that arrived before. Once per lane.
    virtual void receive(Lane lane, Sink& sink) = 0;

    /// Sets the sink of a payload stream. Once per stream. Does not open the window: a sink may
    /// inspect the beginning before it wants the rest.
    virtual void receive(StreamId stream, Sink& sink) = 0;

    /// Lets the peer send more of a stream than the first window. Until then no more than that
    /// window arrives, however much of it the sink takes, so a longer stream is delivered only
    /// after this call.
    virtual void open_window(StreamId stream) = 0;

    /// Tells the link that a pending sink has room.
    virtual void wake_sink(StreamId stream) = 0;
    virtual void wake_sink(Lane lane) = 0;

    /// Drops a payload stream of the peer and tells the peer to stop. The next Carrier::flush()
    /// reports Aborted, or Finished when the sink had taken all bytes, without waiting for the
    /// peer.
    virtual void refuse(StreamId stream) = 0;

    /// Sends a message that may be lost or reordered. Returns false when the message was dropped
    /// because it is larger than max_datagram() or too many are pending.
    virtual bool send_datagram(ConstBytes bytes) = 0;
    virtual std::size_t max_datagram() const noexcept = 0;

    /// Sends a datagram that this node forwards for other members; it may be lost or reordered as
    /// well. Everything that waits in send_datagram() goes first. While lanes and streams wait too,
    /// these datagrams get half of the link, and otherwise all of it. Returns false when the
    /// message was dropped because it is larger than max_datagram() or relayed_room(), or because
    /// the link is being closed. The peer gets DatagramArrived.
    virtual bool send_relayed(ConstBytes /*bytes*/) { return false; }
    /// The size of the largest datagram that send_relayed() has room for now; when nothing waits,
    /// at least max_datagram(). Always 0 for a kind that forwards nothing.
    virtual std::size_t relayed_room() const noexcept { return 0; }

    /// Lets the peer read memory that Carrier::allocate() of this link's carrier made: the peer
    /// gets Shared with `name`. Fails where the kind has no shared memory, or the peer has too much
    /// of it.
    virtual Result<void> share(std::uint64_t /*name*/,
                               const std::shared_ptr<SharedMemory>& /*memory*/) {
        return Error(Errc::unsupported, "links of this kind cannot share memory");
    }

    /// Something in shared memory has changed that the peer may wait for: if its driver sleeps, its
    /// descriptor becomes readable. Cheap if it does not sleep. The caller must have issued a
    /// sequentially consistent fence after the change, which may serve several links.
    virtual void nudge() noexcept {}

    /// False while the peer may lack something that was enqueued on a lane or a stream. A kind
    /// whose packets nobody relays need not tell.
    virtual bool settled() const noexcept { return true; }

    /// Moves the link to another address of the same peer if the peer answers there: PathChanged or
    /// PathFailed follows. Nothing is lost or repeated. Only the side that dialed can do it; on the
    /// other side, and for a kind whose links have no address, the call does nothing.
    virtual void move_to(const Address& /*remote*/) {}

    /// Makes the link find out at once whether packets pass, instead of when its timers say so, for
    /// an owner that doubts it: after a cut, it then goes on within a few round trips.
    virtual void refresh() {}

    /// Sends everything enqueued so far, waits until it has arrived, then ends the link. Down
    /// follows, at the latest after the carrier's linger time. The peer gets `reason`, cut to 200
    /// bytes.
    virtual void close(std::string_view reason) = 0;

    /// Ends the link at once, without the peer: from now on no source or sink is used and nothing
    /// is received, and the next Carrier::flush() reports Released for every stream and then Down
    /// (link_closed), which has no bytes to deliver or to send again. The peer gets `reason` if it
    /// is reachable, but nobody waits for it. For a peer that must not reach this node any more;
    /// also ends a link that is being closed.
    virtual void drop(std::string_view reason) = 0;
};

/// The beginning of a link that two nodes set up over a link that they already have.
struct Invitation {
    LinkId link{};
    /// For Carrier::accept() of the peer, sent over a link that is authenticated and secret. At
    /// most kMaxInvitationBytes.
    std::vector<std::byte> bytes{};
};
inline constexpr std::size_t kMaxInvitationBytes = 256;

/// All links of one kind and the resources they share: a UDP socket, the rings of one host, a
/// device. It owns no thread and no loop; one thread at a time drives it:
///
///     wait until descriptor() is readable, or writable if wants_write(), or next_deadline()
///     on_ready(now); flush(now); while (auto event = poll_event()) engine.handle(now, *event);
///     flush(now)
///
/// `now` never goes back. The carrier makes no decisions: it dials when the node says so, and
/// admits the peers that the credentials of the cluster vouch for.
///
/// Functions with a body here are optional: the body is the answer of a kind of link that does not
/// have the feature, or does not need the hint.
class Carrier {
public:
    virtual ~Carrier() = default;

    /// -1 for a kind that has none, such as the simulator.
    virtual int descriptor() const noexcept = 0;
    virtual bool wants_write() const noexcept = 0;

    /// Takes a bounded amount of what arrived. Returns true if anything had arrived.
    virtual bool on_ready(TimePoint now) = 0;

    /// Sends a bounded amount of what is due, timers included.
    virtual void flush(TimePoint now) = 0;

    /// True if flush() has something to do besides timers. May be true without need.
    virtual bool has_unsent() const noexcept { return true; }

    /// True if a peer would notice that the next flush() is late, or events are pending. A driver
    /// that knows it will flush soon may skip one while this is false.
    virtual bool flush_is_urgent(TimePoint /*now*/) const noexcept { return true; }

    /// When flush() must be called at the latest; not later than `now` if a bound stopped it or
    /// events are pending. nullopt: only after a call of Link or when the descriptor is ready.
    virtual std::optional<TimePoint> next_deadline() const = 0;

    virtual std::optional<LinkEvent> poll_event() = 0;

    /// Frees a link that is Down.
    virtual void forget(LinkId link) = 0;

    /// The address on which this carrier accepts links. Address{} for a kind without addresses.
    virtual Address local() const noexcept { return {}; }

    /// Begins a link; Up or Down follows. The carrier checks inside the handshake that the peer is
    /// the expected one. Errc::unsupported for a target that this kind cannot dial: a kind whose
    /// links are set up over another link cannot dial at all. MemberTarget and SeedTarget need
    /// credentials.
    virtual Result<LinkId> dial(TimePoint /*now*/, const DialTarget& /*target*/) {
        return Error(Errc::unsupported, "links of this kind cannot be dialed");
    }

    /// Begins a link to a peer that this node has another link to; Up or Down follows, at the
    /// latest after the carrier's handshake timeout. Errc::unsupported for a kind that is dialed;
    /// another Error, whose cause completes "no shared memory because ...", where this node cannot
    /// have such a link.
    virtual Result<Invitation> invite(TimePoint /*now*/, const Identity& /*peer*/) {
        return Error(Errc::unsupported, "links of this kind are dialed");
    }

    /// The other end of invite(): begins the link to which `peer` invited this node.
    virtual Result<LinkId> accept(TimePoint /*now*/, const Identity& /*peer*/,
                                  ConstBytes /*invitation*/) {
        return Error(Errc::unsupported, "links of this kind are dialed");
    }

    /// Memory for Link::share(). Errc::unsupported for a kind without shared memory.
    virtual Result<std::shared_ptr<SharedMemory>> allocate(std::size_t /*bytes*/) {
        return Error(Errc::unsupported, "links of this kind cannot share memory");
    }

    /// The driver is about to wait for the descriptor instead of polling: from now on everything
    /// that arrives must make the descriptor readable. Returns false if something has arrived that
    /// does not; then the driver must poll again first.
    virtual bool fall_asleep() noexcept { return true; }
    /// The driver polls again: arrivals need not make the descriptor readable until the next
    /// fall_asleep().
    virtual void wake_up() noexcept {}

    /// Returns the next packet for a peer at Address::tunnel(), which the owner passes to
    /// on_tunnelled() of that peer's carrier, or loses. Poll after every flush().
    virtual std::optional<TunnelPacket> poll_tunnelled() { return std::nullopt; }

    /// Takes a packet that the carrier of `from` gave to poll_tunnelled(). Returns true if the
    /// packet proves that it got through: `from` protected it, and it is newer than all others that
    /// have arrived. Relays can alter and repeat packets, and invent the first ones of a handshake.
    virtual bool on_tunnelled(TimePoint /*now*/, const NodeId& /*from*/, ConstBytes /*packet*/) {
        return false;
    }

    /// Gives up a link that was dialed, or begun by invite() or accept(), and is not Up yet; Down
    /// follows with the next flush().
    virtual void abandon(LinkId /*link*/) {}

    /// Sets the credentials of links that begin from now on. Without any, nobody is admitted and
    /// only a JoinTarget can be dialed.
    virtual void set_credentials(std::shared_ptr<const security::Credentials> /*credentials*/) {}

    /// Sets the protection of links between members that begin from now on. A kind whose bytes
    /// never leave the host may ignore it.
    virtual void set_protection(Protection /*protection*/) {}

    /// Hint: the addresses, ports included, from which members may dial. Under a flood of
    /// handshakes the carrier keeps room for them.
    virtual void set_members(std::span<const Address> /*members*/) {}

    /// Hint: whether more processes are runnable on this machine than it has processors. Then
    /// fewer, larger packets are worth more than low latency.
    virtual void set_crowded(bool /*crowded*/) noexcept {}
};

}  // namespace nexar::port

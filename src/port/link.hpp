#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/error.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include "base/types.hpp"

#include "base/identity.hpp"
#include "base/time.hpp"
#include "port/stream.hpp"

namespace nexar::port {

/// A link of this process; never used again for another one.
using LinkId = Strong<struct LinkName, std::uint64_t>;

class Link;

/// The peer was authenticated, on both sides, and everything can be sent. The first event of a
/// link. `link` lives until Carrier::forget().
struct Up {
    Link* link = nullptr;
    bool dialed = false;  // by this side
    bool joiner = false;  // it has no certificate yet: its peer() says nothing
};

/// What a sink had not taken of a stream that had arrived whole when its link went down.
struct Rest {
    StreamId stream{};
    std::uint64_t offset = 0;  // of the first byte
    std::vector<std::byte> bytes{};
};

/// The last event of a link: nothing is sent or received any more, every stream that was being sent
/// has had its Released, and no source or sink is used again. Also the first event when the link
/// could not be made. What the peer knows to be delivered is not lost: `rests` has what still
/// waited here, at most what may be parked.
struct Down {
    Error reason;
    std::vector<Rest> rests{};
};

/// Somebody dialed us and was not let in: the only event of its link, which nobody need forget.
struct Refused {
    std::string from{};  // the address that it seemed to come from
    Error reason;
};

/// A lane that had no room for a write() has some again.
struct Writable {
    Lane lane{};
};

/// The peer opened a payload stream. Its bytes, as far as the first window lets them come, wait for
/// receive() or refuse().
struct Opened {
    StreamId stream{};
};

/// All bytes of a stream were taken by its sink, which is not used any more.
struct Finished {
    StreamId stream{};
    std::uint64_t bytes = 0;
};

/// The peer gave a stream up, or this side refused it; its sink, if any, is not used any more.
struct Aborted {
    StreamId stream{};
};

enum class SendOutcome : std::uint8_t {
    delivered,  // the peer's link has all bytes
    refused,    // the peer did not want them
    // By cancel() of this side: before all was sent, so that the peer's link never has all bytes;
    // or after that, so that it may have them.
    cancelled,
    cancelled_late,
    link_lost,
};
inline constexpr std::size_t kSendOutcomes = 5;

/// The source and its memory are the owner's again.
struct Released {
    StreamId stream{};
    SendOutcome outcome{};
};

struct DatagramArrived {
    std::vector<std::byte> bytes{};
};

struct LinkEvent {
    LinkId link{};
    std::variant<Up, Down, Refused, Writable, Opened, Finished, Aborted, Released, DatagramArrived>
        what;
};

/// What a payload stream is sent with.
struct StreamOptions {
    Priority priority = Priority::bulk;
    /// Precedes the content; copied. At most kMaxPrefixBytes.
    ConstBytes prefix{};
};
inline constexpr std::size_t kMaxPrefixBytes = 64;

/// A connection to one authenticated peer.
///
/// Calls only enqueue: they neither block nor call back, and may be made from within a Sink or a
/// Source. What follows from them comes as an LinkEvent. After Down all of them do nothing. One
/// thread at a time, the one that drives the carrier.
class Link {
public:
    virtual ~Link() = default;

    virtual LinkId id() const noexcept = 0;

    /// From the peer's certificate; valid from Up on.
    virtual const Identity& peer() const noexcept = 0;

    /// Appends the pieces, one after the other, to a lane; copies them. All or nothing: false when
    /// the lane's queue has no room for all, then Writable follows.
    virtual bool write(Lane lane, std::span<const ConstBytes> pieces) = 0;

    /// Starts a payload stream. Released follows, exactly once.
    virtual StreamId send(Source& source, const StreamOptions& options) = 0;

    /// A source that had no bytes has some.
    virtual void wake_source(StreamId stream) = 0;

    /// Gives up a stream that was not released yet. The next Carrier::flush() releases it, whether
    /// or not the peer answers or the socket takes packets: a stream that is given up is never sent
    /// again, so nobody reads its memory. What has left already is a copy.
    virtual void cancel(StreamId stream) = 0;

    /// Where the bytes of a lane go, those that already wait included. Once per lane.
    virtual void receive(Lane lane, Sink& sink) = 0;

    /// Where the bytes of a payload stream go. Once per stream. Does not open the window: a sink
    /// may look at the beginning before it wants the rest.
    virtual void receive(StreamId stream, Sink& sink) = 0;

    /// Lets the peer send more of a stream than the first window, which is the most that arrives
    /// before, however much of it the sink takes. So a longer stream is delivered only after this.
    virtual void open_window(StreamId stream) = 0;

    /// A sink that was pending has room.
    virtual void wake_sink(StreamId stream) = 0;
    virtual void wake_sink(Lane lane) = 0;

    /// Drops a payload stream of the peer, which is told to stop. The next Carrier::flush() tells
    /// Aborted, or Finished when all bytes were taken before, without waiting for the peer.
    virtual void refuse(StreamId stream) = 0;

    /// A message that may be lost, or overtaken. False when it is larger than max_datagram() or
    /// when too many wait already: it was dropped.
    virtual bool send_datagram(ConstBytes bytes) = 0;
    virtual std::size_t max_datagram() const noexcept = 0;

    /// Sends what was given so far, waits for it to arrive, then ends the link; Down follows, at
    /// the latest after the linger time of the carrier. `reason` is told to the peer, cut to 200
    /// bytes.
    virtual void close(std::string_view reason) = 0;
};

/// All links of one kind, and what they share: a UDP socket, rings of one host, a device. Owns no
/// thread and no loop; is driven by one thread at a time:
///
///     wait until descriptor() is readable, or writable if wants_write(), or next_deadline()
///     on_ready(now); flush(now); while (auto event = poll_event()) engine.handle(now, *event);
///     flush(now)
///
/// `now` never goes back.
class Carrier {
public:
    virtual ~Carrier() = default;

    virtual int descriptor() const noexcept = 0;
    virtual bool wants_write() const noexcept = 0;

    /// Takes a bounded amount of what arrived.
    virtual void on_ready(TimePoint now) = 0;

    /// Sends a bounded amount of what is due, timers included.
    virtual void flush(TimePoint now) = 0;

    /// When flush() must be called at the latest; not later than `now` when a bound stopped it, or
    /// when events wait. None: only after a call of Link or when the descriptor is ready.
    virtual std::optional<TimePoint> next_deadline() const = 0;

    virtual std::optional<LinkEvent> poll_event() = 0;

    /// Frees a link that is Down.
    virtual void forget(LinkId link) = 0;
};

}  // namespace nexar::port

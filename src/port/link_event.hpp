#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/error.hpp>
#include <string>
#include <variant>
#include <vector>

#include "base/address.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "port/shared_memory.hpp"
#include "port/stream.hpp"

namespace nexar::port {

/// A link of this process; never reused for another link.
using LinkId = Strong<struct LinkName, std::uint64_t>;

class Link;

/// Both sides authenticated each other, and everything can be sent. The first event of a link.
/// `link` lives until Carrier::forget().
struct Up {
    Link* link = nullptr;
    bool dialed = false;  // by this side
    bool joiner = false;  // the peer has no certificate yet, so peer() says nothing
};

/// The bytes of a completely arrived stream that its sink had not taken when the link went down.
struct Rest {
    StreamId stream{};
    std::uint64_t offset = 0;  // of the first byte
    std::vector<std::byte> bytes{};
};

/// Bytes of one lane in one direction of a link; `offset` counts from the lane's first byte.
struct LaneBytes {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes{};
};

/// The last event of a link: nothing is sent or received any more, every stream that was being sent
/// has had its Released, and the link does not use any source or sink again. Also the first event
/// when the link could not be established. Bytes that the peer knows to be delivered are not lost:
/// `rests` and `untaken` have those that were still parked here, at most the park budget. The peer
/// may have other links, so nothing else is lost either: `unconfirmed` has what must be sent again.
struct Down {
    Error reason;
    std::vector<Rest> rests{};
    /// Per lane: bytes that arrived and that the sink had not taken.
    std::array<LaneBytes, kLanes> untaken{};
    /// Per lane: bytes written here that the peer's link is not known to have. All earlier bytes
    /// reach the peer's sink or its `untaken`.
    std::array<LaneBytes, kLanes> unconfirmed{};
    /// The link knows that the peer's process has ended, so its other links are useless.
    bool peer_gone = false;
};

/// A peer dialed this carrier and was refused: the only event of its link, which need not be
/// forgotten.
struct Refused {
    std::string from{};  // its apparent source address
    Error reason;
};

/// A lane that had no room for a write() has room again.
struct Writable {
    Lane lane{};
};

/// The peer opened a payload stream. The bytes of its first window are kept until receive() or
/// refuse().
struct Opened {
    StreamId stream{};
};

/// The sink has taken all bytes of a stream; the link does not use it any more.
struct Finished {
    StreamId stream{};
    std::uint64_t bytes = 0;
};

/// The peer cancelled a stream, or this side refused it; the link does not use its sink any more.
struct Aborted {
    StreamId stream{};
};

enum class SendOutcome : std::uint8_t {
    delivered,  // the peer's link has all bytes
    refused,    // by the peer
    // By cancel() of this side: before everything was sent, so the peer's link never has all bytes;
    // or after that, so that it may have them.
    cancelled,
    cancelled_late,
    link_lost,
};
inline constexpr std::size_t kSendOutcomes = 5;

/// The owner may reuse the source and its memory.
struct Released {
    StreamId stream{};
    SendOutcome outcome{};
};

struct DatagramArrived {
    std::vector<std::byte> bytes{};
};

/// The peer shared memory with this node, see Link::share().
struct Shared {
    std::uint64_t name = 0;
    std::shared_ptr<const PeerMemory> memory{};
};

/// The peer's host refused a packet: no process listens at the peer's address. Only a hint, because
/// anyone may have forged it: the link stays up. At most one per link in kRefusedInterval.
struct PeerRefused {};
inline constexpr Duration kRefusedInterval = std::chrono::milliseconds(10);

/// Packets of the peer arrive, but it has not acknowledged ours for long (true), or does so again
/// (false). After a cut, a link may stay so for as long as the cut lasted, on a path that works.
struct Stalled {
    bool stalled = false;
};

/// The link now uses this address of the peer: after move_to(), or because the peer moved it.
struct PathChanged {
    Address remote{};
};

/// The peer did not answer at the address of the last move_to(); the link stays where it was.
struct PathFailed {
    Address remote{};
};

struct LinkEvent {
    LinkId link{};
    std::variant<Up, Down, Refused, Writable, Opened, Finished, Aborted, Released, DatagramArrived,
                 Shared, PeerRefused, Stalled, PathChanged, PathFailed>
        what;
};

}  // namespace nexar::port

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include "base/types.hpp"

/// The interfaces between the core and the shell. The core uses every kind of link (QUIC, shared
/// memory, UCX, simulated) only through them, so nothing here may depend on how one kind works. The
/// clock of the shell is nexar::Clock in base/time.hpp.
namespace nexar::port {

/// The long-lived byte streams of a link, in the order in which the writer serves them. Each is
/// reliable, ordered and exactly-once in both directions until the link fails. There is no order
/// between lanes.
enum class Lane : std::uint8_t { control, rpc, eager };
inline constexpr std::size_t kLanes = 3;

/// The order in which payload streams are written, after all lanes. No class starves: each lower
/// one gets at least 5 % of the bytes written.
enum class Priority : std::uint8_t { critical, realtime, bulk };
inline constexpr std::size_t kPriorities = 3;

/// One payload stream of one link, as this side numbers it. The sender and the receiver number the
/// same stream independently.
using StreamId = Strong<struct StreamName, std::uint64_t>;

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

/// Provides the bytes of one payload stream.
///
/// The sender owns it. The source, and the memory it shows that is ready(), must not change until
/// the link reports Released: a retransmission reads the same memory again. The link calls it only
/// inside Carrier::flush(), Carrier::on_ready() and wake_source().
class Source {
public:
    virtual ~Source() = default;

    virtual std::uint64_t size() const noexcept = 0;

    /// The whole content in order, in host memory; the list is stable as well. If the list is empty
    /// although size() is not 0, the link asks for the bytes with fill().
    virtual std::span<const ConstBytes> regions() const noexcept = 0;

    /// The number of bytes, from the front, that the link may read from regions(). Only grows; the
    /// owner calls Link::wake_source() when it has grown.
    virtual std::uint64_t ready() const noexcept { return size(); }

    /// Writes bytes from `offset` on to `out`, each byte once and in order, and returns how many it
    /// wrote. It returns 0 when there are none yet; the owner then calls Link::wake_source() when
    /// there are some.
    virtual std::size_t fill(std::uint64_t offset, Bytes out) noexcept = 0;
};

/// Takes the bytes of a lane or of one payload stream.
///
/// The receiver owns it and keeps it until the link reports Finished or Aborted for the stream, or
/// Down. Pieces may be cut anywhere, so the sink deals with partial elements. The link calls it
/// only inside Carrier::flush() and on_ready(). A sink may call Link, which only enqueues.
class Sink {
public:
    virtual ~Sink() = default;

    /// Takes the bytes that directly follow those taken before; the first one is at `offset`.
    /// Returns how many it took. If it took fewer than it was given, it is pending: the link keeps
    /// the rest, within the stream's window, stops only this stream, and continues after
    /// Link::wake_sink().
    virtual std::size_t write(std::uint64_t offset, ConstBytes bytes) noexcept = 0;

    /// Memory in which a link may place up to `bytes` bytes from `offset` on directly; it may be
    /// shorter. Empty: the sink wants to see the bytes, so the link must write() them. The owner
    /// may reuse the memory in the next turn, so a link uses it only within the carrier call in
    /// which it asked for it.
    virtual Bytes region(std::uint64_t offset, std::size_t bytes) noexcept = 0;
};

}  // namespace nexar::port

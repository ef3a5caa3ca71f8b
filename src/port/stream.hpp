#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include "base/types.hpp"

/// The interfaces between the core and the shell. Every link (QUIC, shared memory, UCX, simulated)
/// is used through them alone, so nothing here may depend on how one of them works. The clock of
/// the shell is nexar::Clock in base/time.hpp.
namespace nexar::port {

/// The long-lived byte streams of a link, in the order in which the writer serves them. Each is
/// reliable, ordered and exactly-once in both directions until the link fails; nothing is ordered
/// between lanes.
enum class Lane : std::uint8_t { control, rpc, eager };
inline constexpr std::size_t kLanes = 3;

/// In which order payload streams are written; they come after all lanes. No class starves: each
/// lower one gets at least 5 % of what is written.
enum class Priority : std::uint8_t { critical, realtime, bulk };
inline constexpr std::size_t kPriorities = 3;

/// One payload stream of one link, as this side numbers it. The sender's and the receiver's numbers
/// of the same stream have nothing to do with each other.
using StreamId = Strong<struct StreamName, std::uint64_t>;

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

/// Where the bytes of one payload stream come from.
///
/// Belongs to whoever sends. It, and the memory that it shows and that is ready(), must stay as
/// they are until the link says Released: a lost packet is sent again from the same memory. The
/// link calls it only inside Carrier::flush() and on_ready(), and inside wake_source().
class Source {
public:
    virtual ~Source() = default;

    virtual std::uint64_t size() const noexcept = 0;

    /// The whole content in order, in host memory; the list is stable as well. An empty list for a
    /// size that is not 0: the bytes must be asked for with fill().
    virtual std::span<const ConstBytes> regions() const noexcept = 0;

    /// How many bytes from the front may be read by now, where regions() shows them. Only grows;
    /// whoever owns the source calls Link::wake_source() when there are more.
    virtual std::uint64_t ready() const noexcept { return size(); }

    /// Writes bytes from `offset` on to `out`, each byte once and in order, and says how many; 0:
    /// none for now, and whoever owns the source calls Link::wake_source() when there are some.
    virtual std::size_t fill(std::uint64_t offset, Bytes out) noexcept = 0;
};

/// Where the bytes of a lane or of one payload stream go.
///
/// Belongs to whoever receives; must live until the link says Finished or Aborted for the stream,
/// or Down. Partial elements are the sink's business: pieces are cut anywhere. Called only inside
/// Carrier::flush() and on_ready(); may call Link, which only enqueues.
class Sink {
public:
    virtual ~Sink() = default;

    /// Takes bytes that follow without gap on what was taken before, the first of which stands at
    /// `offset`, and says how many. Fewer than given: pending; the link keeps the rest, within the
    /// stream's window, stops this stream only, and goes on after Link::wake_sink().
    virtual std::size_t write(std::uint64_t offset, ConstBytes bytes) noexcept = 0;

    /// Memory in which up to `bytes` bytes from `offset` on may be placed directly, by links that
    /// can; possibly fewer. Empty: this sink wants to see the bytes, so write() them. The memory
    /// may be the owner's again in the next turn: a link uses it within the call of the carrier in
    /// which it asked, and asks again in the next one.
    virtual Bytes region(std::uint64_t offset, std::size_t bytes) noexcept = 0;
};

}  // namespace nexar::port

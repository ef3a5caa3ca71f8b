#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>

#include "base/time.hpp"
#include "link/sim/inlet.hpp"
#include "link/sim/outlet.hpp"

namespace nexar::sim {

class Link;

/// A lane or a payload stream in one direction: its two halves, and the bytes between them.
///
/// Both ends of a link share it. Each end uses only its own half, and uses bytes in flight only
/// when they are due, so neither knows anything that it could not know over a network.
struct Pipe : std::enable_shared_from_this<Pipe> {
    /// Bytes up to an offset that travel together; if the stream ends there, also how it ends.
    struct Segment {
        TimePoint due{};
        std::uint64_t end = 0;
        bool ends = false;
        bool resets = false;
    };

    explicit Pipe(port::Lane of) : lane(of), out(of) {}
    Pipe(port::StreamId id, port::Source& source, const port::StreamOptions& options, bool check)
        : out(id, source, options, check) {}

    /// Drops the bytes that nobody needs any more. The sender keeps those of a lane until they are
    /// acknowledged.
    void drop_done() {
        const std::uint64_t done = lane ? std::min(in.taken(), out.acknowledged()) : in.taken();
        bytes.drop_to(std::max(bytes.begin(), done));
    }

    std::optional<port::Lane> lane{};
    Outlet out;
    Inlet in{};
    port::StreamId in_id{};  // the number at the receiving side
    Link* receiver = nullptr;
    ByteQueue bytes{};  // written or sent, and not yet taken
    std::deque<Segment> segments{};
    TimePoint last_due = TimePoint::min();
    std::size_t heap_place = std::numeric_limits<std::size_t>::max();
};

}  // namespace nexar::sim

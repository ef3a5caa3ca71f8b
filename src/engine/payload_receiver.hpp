#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "port/stream.hpp"

namespace nexar::engine {

class InStream;

/// The size of a payload whose header has not arrived.
inline constexpr std::uint64_t kUnknownBytes = std::numeric_limits<std::uint64_t>::max();

/// The part of an incoming message, call or collective that takes its payload, whichever way the
/// payload travels: behind its header on a lane, or on a stream of its own. PeerTransfers and
/// LaneReader call it; it must outlive both, or detach itself first: by reject() from its stream,
/// by PeerTransfers::skip() from its lane.
class PayloadReceiver {
public:
    PayloadReceiver() = default;
    PayloadReceiver(const PayloadReceiver&) = delete;
    PayloadReceiver& operator=(const PayloadReceiver&) = delete;
    virtual ~PayloadReceiver() = default;

    /// Takes bytes of the payload, in order and never more than `bytes` in all, and returns how
    /// many. On a lane it must take all of them; on a stream the rest waits in the link until
    /// InStream::open() or wake().
    virtual std::size_t write(std::uint64_t offset, port::ConstBytes from) noexcept = 0;
    /// Memory for bytes of a stream, see port::Sink::region(). Bytes that were placed in it may
    /// arrive again through write().
    virtual port::Bytes region(std::uint64_t /*offset*/, std::size_t /*most*/) noexcept {
        return {};
    }

    /// `stream` was just set: the payload has begun to arrive on it, or begins again on another
    /// link after the first one broke.
    virtual void attached() = 0;
    /// The payload ended after `came` bytes, all of which were taken. `stream` is nullptr again.
    virtual void finished(std::uint64_t came) = 0;
    /// The peer abandoned the stream, or this side refused it. `stream` is nullptr again.
    virtual void aborted() = 0;
    /// True when a payload that arrived completely is still needed after its link went down.
    virtual bool outlives_link() const noexcept { return false; }

    /// Refuses the stream, if there is one, and detaches from it.
    void reject();

    /// True when all bytes have arrived on streams; the end of the last stream may be missing.
    bool complete() const noexcept { return streamed == bytes; }

    std::uint64_t bytes = 0;     // of the payload, as its header says
    InStream* stream = nullptr;  // on which the payload arrives
    /// How many bytes from the front arrived on streams, at least: if the link of a stream breaks,
    /// the payload arrives again from the beginning on another stream, and InStream skips these.
    std::uint64_t streamed = 0;
};

}  // namespace nexar::engine

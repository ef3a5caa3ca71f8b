#pragma once

#include <cstddef>
#include <cstdint>

#include "port/link.hpp"
#include "port/stream.hpp"

namespace nexar::engine {

class PeerTransfers;

/// A payload that this node sends on a stream of its own: the part of a send, a call, a response or
/// a step of a collective that a link reads. PeerTransfers::send() starts it; from then until
/// released() it and the memory in regions() must stay in place.
class OutStream : public port::Source {
public:
    OutStream() = default;
    OutStream(const OutStream&) = delete;
    OutStream& operator=(const OutStream&) = delete;

    std::size_t fill(std::uint64_t /*offset*/, port::Bytes /*out*/) noexcept override { return 0; }

    /// Called once per send(), when the link no longer reads the memory. May destroy the object.
    virtual void released(port::SendOutcome outcome) = 0;

    /// True from send() until released().
    bool sending() const noexcept { return transfers_ != nullptr; }
    /// Cancels the stream; released() follows. Does nothing unless sending().
    void cancel();
    /// Called when ready() has grown. Does nothing unless sending().
    void wake();

private:
    friend class PeerTransfers;

    PeerTransfers* transfers_ = nullptr;
    port::StreamId id_{};
};

}  // namespace nexar::engine

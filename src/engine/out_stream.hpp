#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/transfer_name.hpp"
#include "port/link.hpp"
#include "port/stream.hpp"

namespace nexar::engine {

class PeerTransfers;
struct PeerLink;

/// A payload that this node sends on a stream of its own: the part of a send, a call, a response or
/// a step of a collective that a link reads. PeerTransfers::send() starts it; from then until
/// released() it and the memory in regions() must stay in place. If the link breaks and the peer
/// has another one, the payload is sent again on that one.
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
    PeerLink* link_ = nullptr;  // nullptr: the link broke, and it waits to be sent again
    port::StreamId id_{};
    TransferName name_{};
    port::Priority priority_ = port::Priority::bulk;
    std::uint16_t attempt_ = 0;  // not 0: it was sent on a link that broke, so the peer may have it
    bool cancelled_ = false;
};

}  // namespace nexar::engine

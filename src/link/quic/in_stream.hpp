#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "link/quic/staged_bytes.hpp"
#include "port/link.hpp"
#include "port/stream.hpp"

namespace nexar::quic {

/// Sizes a stream's window so that the peer never waits for credit: it doubles as long as half of
/// it is consumed within one round trip. The round trip is that of an empty path: if it included
/// queueing, a window would grow because it has grown.
class WindowTuner {
public:
    WindowTuner(std::uint64_t window, std::uint64_t most) noexcept : window_(window), most_(most) {}

    std::uint64_t window() const noexcept { return window_; }

    /// Notes that `bytes` were consumed; returns by how much the window grows.
    std::uint64_t consumed(TimePoint now, std::uint64_t bytes, Duration round_trip) noexcept;

private:
    std::uint64_t window_;
    std::uint64_t most_;
    std::uint64_t since_ = 0;
    std::optional<TimePoint> began_{};
};

/// The receiving half of a lane or of a payload stream: passes bytes to its sink and parks, up to
/// the window, what the sink does not take yet.
class InStream {
public:
    InStream(port::StreamId id, std::int64_t stream, BufferPool& pool,
             std::optional<port::Lane> of = {})
        : quic_id(stream), lane(of), id_(id), parked_(pool) {}

    port::StreamId id() const noexcept { return id_; }
    bool has_sink() const noexcept { return sink_ != nullptr; }
    void attach(port::Sink& sink) noexcept { sink_ = &sink; }
    /// May be called by the sink itself.
    void detach() noexcept { sink_ = nullptr; }

    /// Takes the next bytes of the stream. Returns how many the sink took; the rest is parked.
    /// Errc::out_of_memory if they cannot be parked.
    Result<std::size_t> arrived(port::ConstBytes bytes);

    /// Offers parked bytes to the sink again; returns how many it took.
    std::size_t retry() noexcept;

    void ended() noexcept { ended_ = true; }
    bool has_ended() const noexcept { return ended_; }
    /// True if the sink has taken all bytes.
    bool finished() const noexcept { return ended_ && sink_ != nullptr && parked_.size() == 0; }
    std::uint64_t taken() const noexcept { return taken_; }
    std::uint64_t parked() const noexcept { return parked_.size(); }

    /// Removes and returns the parked bytes.
    std::vector<std::byte> take_parked();

    /// Drops the parked bytes and ignores all that follow; returns how many were dropped.
    std::uint64_t abandon() noexcept;
    bool abandoned() const noexcept { return abandoned_; }

    // The connection's state for this stream.
    const std::int64_t quic_id;
    const std::optional<port::Lane> lane;
    bool closed = false;  // ngtcp2 has forgotten it, so it gets no more credit
    bool queued = false;  // in the list of streams to process
    bool refused = false;
    bool handled = false;    // its last event was reported
    std::uint64_t owed = 0;  // credit not yet given to the peer
    std::optional<WindowTuner> tuner{};

private:
    port::StreamId id_;
    port::Sink* sink_ = nullptr;
    StagedBytes parked_;  // offsets count from the first byte ever parked
    std::uint64_t taken_ = 0;
    bool ended_ = false;
    bool abandoned_ = false;
};

}  // namespace nexar::quic

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

/// How large a stream's window must be so that the peer never waits for credit: it doubles as long
/// as half of it is consumed within one round trip. The round trip is that of an empty path: with
/// what queues add, a window would grow because it has grown.
class WindowTuner {
public:
    WindowTuner(std::uint64_t window, std::uint64_t most) noexcept : window_(window), most_(most) {}

    std::uint64_t window() const noexcept { return window_; }

    /// `bytes` were consumed; by how much the window grows.
    std::uint64_t consumed(TimePoint now, std::uint64_t bytes, Duration round_trip) noexcept;

private:
    std::uint64_t window_;
    std::uint64_t most_;
    std::uint64_t since_ = 0;
    std::optional<TimePoint> began_{};
};

/// The receiving half of a lane or of a payload stream: hands bytes on to its sink, and keeps, up
/// to the window, what the sink does not take yet.
class InStream {
public:
    InStream(port::StreamId id, std::int64_t stream, BufferPool& pool,
             std::optional<port::Lane> of = {})
        : quic_id(stream), lane(of), id_(id), parked_(pool) {}

    port::StreamId id() const noexcept { return id_; }
    bool has_sink() const noexcept { return sink_ != nullptr; }
    void attach(port::Sink& sink) noexcept { sink_ = &sink; }

    /// Bytes that follow on those before. Returns how many the sink took; the rest is parked.
    /// Errc::out_of_memory when it cannot be.
    Result<std::size_t> arrived(port::ConstBytes bytes);

    /// Offers parked bytes to the sink again; how many it took.
    std::size_t retry() noexcept;

    void ended() noexcept { ended_ = true; }
    bool has_ended() const noexcept { return ended_; }
    /// All bytes were taken.
    bool finished() const noexcept { return ended_ && sink_ != nullptr && parked_.size() == 0; }
    std::uint64_t taken() const noexcept { return taken_; }
    std::uint64_t parked() const noexcept { return parked_.size(); }

    /// Takes what is parked out of it.
    std::vector<std::byte> take_parked();

    /// Drops what is parked and looks at nothing any more; how many bytes were dropped.
    std::uint64_t abandon() noexcept;
    bool abandoned() const noexcept { return abandoned_; }

    // What the connection keeps with a stream.
    const std::int64_t quic_id;
    const std::optional<port::Lane> lane;
    bool closed = false;  // the library has forgotten it: no credit can be given any more
    bool queued = false;  // in the list of streams to look at
    bool refused = false;
    bool handled = false;    // its last event was told
    std::uint64_t owed = 0;  // credit that the peer was not given yet
    std::optional<WindowTuner> tuner{};

private:
    port::StreamId id_;
    port::Sink* sink_ = nullptr;
    StagedBytes parked_;  // counts from the first byte that was ever parked
    std::uint64_t taken_ = 0;
    bool ended_ = false;
    bool abandoned_ = false;
};

}  // namespace nexar::quic

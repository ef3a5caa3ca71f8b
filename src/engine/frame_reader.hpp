#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <utility>
#include <vector>

#include "engine/payload_receiver.hpp"
#include "port/stream.hpp"
#include "wire/frame.hpp"
#include "wire/preamble.hpp"

namespace nexar::engine {

/// The payload that follows a frame on its lane.
struct LanePayload {
    std::uint64_t bytes = 0;
    PayloadReceiver* receiver = nullptr;  // takes every byte as it arrives; nullptr: it is dropped
};

/// Splits the bytes of a lane into frames and the payloads behind them, whichever links they arrive
/// on. Takes all bytes immediately: a lane never waits.
///
/// The bytes may be in memory that the peer can change, so a frame is copied before it is decoded.
class FrameReader {
public:
    /// Receives the frames.
    class Taker {
    public:
        virtual ~Taker() = default;
        /// Called with a whole frame. Returns the payload that follows it. A taker that has already
        /// processed the whole payload, from behind_frame(), returns no receiver for it.
        virtual Result<LanePayload> frame(const wire::FrameHeader& header,
                                          port::ConstBytes body) = 0;
        /// Called on the eager lane where a frame begins, with what has arrived. May process this
        /// frame and its whole payload as frame() would; returns how many bytes it took, or 0 if it
        /// did nothing.
        virtual std::size_t take_at_once(port::ConstBytes /*bytes*/) { return 0; }
        /// Called when the peer violates the protocol; the reader drops the rest of the lane.
        virtual void violated(const Error& error) = 0;
        /// The lane has advanced, and somebody waits for that: bytes of this lane have arrived on
        /// another link before the ones that precede them.
        virtual void advanced(wire::Lane /*lane*/) {}

        /// Inside frame(): what has arrived behind the frame, as far as it is in one piece of
        /// memory. The peer may change it at any time.
        port::ConstBytes behind_frame() const noexcept { return behind_; }

    private:
        friend class FrameReader;
        port::ConstBytes behind_{};
    };

    FrameReader(wire::Lane lane, Taker& taker) noexcept : lane_(lane), taker_(&taker) {}

    wire::Lane lane() const noexcept { return lane_; }
    /// The number of bytes read so far, on all links and without preambles.
    std::uint64_t position() const noexcept { return position_; }

    /// Takes bytes from the front and returns how many: all, unless a Moved frame ends the part of
    /// the lane that they belong to. Then take_moved() returns true once.
    std::size_t read(port::ConstBytes bytes) noexcept;
    bool take_moved() noexcept { return moved_ && std::exchange(moved_, false); }

    /// Somebody waits, or nobody waits any more, for the lane to advance.
    void set_awaited(bool awaited) noexcept { awaited_ = awaited; }
    /// To be called after read(), when this object may be used again.
    void tell_advanced() {
        if (awaited_) [[unlikely]] {
            taker_->advanced(lane_);
        }
    }

    /// Passes all later frames to `taker`. May be called from within Taker::frame().
    void hand_to(Taker& taker) noexcept { taker_ = &taker; }

    /// If `receiver` is taking a payload, drops the rest of the payload.
    void skip(const PayloadReceiver& receiver) noexcept {
        if (payload_.receiver == &receiver) payload_.receiver = nullptr;
    }
    /// True if it drops everything.
    bool stopped() const noexcept { return broken_; }
    void stop() noexcept {
        broken_ = true;
        payload_.receiver = nullptr;
    }
    /// The same because the peer violated the protocol.
    void fail(const Error& error);

private:
    Result<void> take_frame(const wire::FrameHeader& header, port::ConstBytes body,
                            port::ConstBytes behind);
    std::size_t take_payload(port::ConstBytes bytes);
    Result<std::size_t> take_some(port::ConstBytes bytes);
    Result<std::size_t> take_first(port::ConstBytes bytes);
    Result<std::size_t> take_more(port::ConstBytes bytes);

    wire::Lane lane_;
    Taker* taker_;
    bool broken_ = false;
    bool moved_ = false;
    bool awaited_ = false;
    std::uint64_t moved_to_ = 0;  // as the Moved frame says
    std::uint64_t position_ = 0;
    LanePayload payload_{};           // the one that is arriving
    std::uint64_t payload_came_ = 0;  // how many of its bytes have arrived
    std::vector<std::byte> part_;     // the beginning of a frame whose end has not arrived
};

}  // namespace nexar::engine

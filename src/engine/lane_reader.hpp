#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <nexar/result.hpp>
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

/// Splits the bytes of a lane into its preamble, frames, and the payloads behind frames. Takes all
/// bytes immediately: a lane never waits.
class LaneReader final : public port::Sink {
public:
    /// Receives the frames.
    class Taker {
    public:
        virtual ~Taker() = default;
        /// Called with a whole frame. Returns the payload that follows it.
        virtual Result<LanePayload> frame(const wire::FrameHeader& header,
                                          port::ConstBytes body) = 0;
        /// Called when the peer violates the protocol; the reader drops the rest of the lane.
        virtual void violated(const Error& error) = 0;
    };

    LaneReader(wire::Lane lane, Taker& taker) noexcept : lane_(lane), taker_(&taker) {}

    /// Passes all later frames to `taker`. May be called from within frame().
    void hand_to(Taker& taker) noexcept { taker_ = &taker; }

    /// If `receiver` is taking a payload, drops the rest of the payload.
    void skip(const PayloadReceiver& receiver) noexcept {
        if (payload_.receiver == &receiver) payload_.receiver = nullptr;
    }

    std::size_t write(std::uint64_t offset, port::ConstBytes bytes) noexcept override;
    port::Bytes region(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept override {
        return {};
    }

private:
    /// Takes one unit from the front of `bytes` and returns its size, or 0 if it is incomplete.
    Result<std::size_t> take_unit(port::ConstBytes bytes);
    Result<std::size_t> take_preamble(port::ConstBytes bytes);
    Result<std::size_t> take_frame(port::ConstBytes bytes);
    std::size_t take_payload(port::ConstBytes bytes);
    Result<std::size_t> take_some(port::ConstBytes bytes);

    wire::Lane lane_;
    Taker* taker_;
    bool started_ = false;  // the preamble was read
    bool broken_ = false;
    LanePayload payload_{};           // the one that is arriving
    std::uint64_t payload_came_ = 0;  // how many of its bytes have arrived
    std::vector<std::byte> part_;     // the beginning of a unit whose end has not arrived
};

}  // namespace nexar::engine

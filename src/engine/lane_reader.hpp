#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <nexar/result.hpp>
#include "port/stream.hpp"
#include "wire/frame.hpp"
#include "wire/preamble.hpp"

namespace nexar::engine {

/// Cuts the bytes of a lane into its preamble, frames, and the payloads behind eager headers. Takes
/// everything at once: a lane never waits for a receive.
class LaneReader final : public port::Sink {
public:
    /// What the pieces are for.
    class Taker {
    public:
        virtual ~Taker() = default;
        /// A whole frame. The answer says how many bytes of payload follow.
        virtual Result<std::uint64_t> frame(const wire::FrameHeader& header,
                                            port::ConstBytes body) = 0;
        /// Where the next payload bytes go: as many as fit, at least one; empty: nowhere.
        virtual port::Bytes payload_place(std::size_t bytes) = 0;
        /// So many bytes of payload came, written there or not wanted.
        virtual void payload_came(std::size_t bytes) = 0;
        /// The peer broke the rules: nothing of this lane is looked at any more.
        virtual void violated(const Error& error) = 0;
    };

    LaneReader(wire::Lane lane, Taker& taker) noexcept : lane_(lane), taker_(&taker) {}

    /// From now on frames go there, also from within frame().
    void hand_to(Taker& taker) noexcept { taker_ = &taker; }

    std::size_t write(std::uint64_t offset, port::ConstBytes bytes) noexcept override;
    port::Bytes region(std::uint64_t /*offset*/, std::size_t /*bytes*/) noexcept override {
        return {};
    }

private:
    /// Takes one unit from the front of what is there: how many bytes; 0: it is not whole yet.
    Result<std::size_t> take_unit(port::ConstBytes bytes);
    Result<std::size_t> take_preamble(port::ConstBytes bytes);
    Result<std::size_t> take_frame(port::ConstBytes bytes);
    std::size_t take_payload(port::ConstBytes bytes);
    Result<std::size_t> take_some(port::ConstBytes bytes);

    wire::Lane lane_;
    Taker* taker_;
    bool started_ = false;  // the preamble was read
    bool broken_ = false;
    std::uint64_t payload_left_ = 0;
    std::vector<std::byte> part_;  // the beginning of a unit whose end has not come
};

}  // namespace nexar::engine

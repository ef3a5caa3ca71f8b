#include "engine/lane_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "wire/preamble.hpp"

namespace nexar::engine {

namespace {

wire::Lane lane_of(const wire::Preamble& preamble) noexcept {
    return preamble.lane == wire::Lane::continued ? static_cast<wire::Lane>(preamble.continues)
                                                  : preamble.lane;
}

}  // namespace

/// Takes bytes of the preamble from the front and returns how many.
Result<std::size_t> LaneReader::take_preamble(port::ConstBytes bytes) {
    std::size_t taken = 0;
    const port::ConstBytes all(preamble_);
    while (true) {
        NEXAR_TRY_VALUE(size, wire::preamble_size(all.first(preamble_bytes_)));
        if (preamble_bytes_ == size) break;
        const std::size_t more = std::min(size - preamble_bytes_, bytes.size() - taken);
        if (more == 0) return taken;
        std::ranges::copy(bytes.subspan(taken, more), preamble_.begin() + preamble_bytes_);
        preamble_bytes_ += more;
        taken += more;
    }
    NEXAR_TRY_VALUE(preamble, wire::decode_preamble(all.first(std::exchange(preamble_bytes_, 0))));
    if (lane_of(preamble) != frames_->lane()) {
        return Error(Errc::protocol_violation,
                     fmt::format("the peer began the {} lane with the preamble of the {} lane",
                                 wire::name(frames_->lane()), wire::name(lane_of(preamble))));
    }
    if (preamble.lane != wire::Lane::continued && frames_->position() != 0) {
        return Error(Errc::protocol_violation,
                     fmt::format("the peer began the {} lane twice", wire::name(preamble.lane)));
    }
    started_ = true;
    position_ = preamble.position;
    return taken;
}

std::size_t LaneReader::write(std::uint64_t /*offset*/, port::ConstBytes bytes) noexcept {
    port::ConstBytes rest = bytes;
    while (!rest.empty() && !over_ && !frames_->stopped()) {
        if (!started_) {
            const auto taken = take_preamble(rest);
            if (!taken) {
                over_ = true;
                frames_->fail(taken.error());
                break;
            }
            rest = rest.subspan(*taken);
            continue;
        }
        waits_ = position_ > frames_->position();
        if (waits_) {
            frames_->set_awaited(true);
            break;
        }
        // The peer has given up this link and has sent these bytes on another one.
        over_ = position_ < frames_->position();
        if (over_) break;
        const std::size_t taken = frames_->read(rest);
        rest = rest.subspan(taken);
        position_ += taken;
        if (frames_->take_moved()) started_ = false;
        frames_->tell_advanced();
    }
    return waits_ ? bytes.size() - rest.size() : bytes.size();
}

}  // namespace nexar::engine

#include "engine/lane_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"

namespace nexar::engine {

Result<std::size_t> LaneReader::take_preamble(port::ConstBytes bytes) {
    NEXAR_TRY_VALUE(size, wire::preamble_size(bytes));
    if (size > bytes.size()) return std::size_t{0};
    NEXAR_TRY_VALUE(preamble, wire::decode_preamble(bytes.first(size)));
    if (preamble.lane != lane_) {
        return Error(Errc::protocol_violation,
                     fmt::format("the peer began the {} lane with the preamble of the {} lane",
                                 wire::name(lane_), wire::name(preamble.lane)));
    }
    started_ = true;
    return size;
}

Result<std::size_t> LaneReader::take_frame(port::ConstBytes bytes) {
    NEXAR_TRY_VALUE(size, wire::frame_size(bytes));
    if (size > bytes.size()) return std::size_t{0};
    NEXAR_TRY_VALUE(header, wire::decode_frame_header(bytes));
    if (!wire::belongs_on(lane_, header.type)) {
        return Error(Errc::protocol_violation,
                     fmt::format("the peer sent a frame of type {} on the {} lane",
                                 wire::name(header.type), wire::name(lane_)));
    }
    const auto body = bytes.first(size).subspan(wire::kFrameHeaderBytes);
    NEXAR_TRY_VALUE(payload, taker_->frame(header, body));
    payload_ = payload;
    payload_came_ = 0;
    return size;
}

Result<std::size_t> LaneReader::take_unit(port::ConstBytes bytes) {
    return started_ ? take_frame(bytes) : take_preamble(bytes);
}

std::size_t LaneReader::take_payload(port::ConstBytes bytes) {
    const auto taken = static_cast<std::size_t>(
        std::min<std::uint64_t>(bytes.size(), payload_.bytes - payload_came_));
    const std::uint64_t offset = payload_came_;
    payload_came_ += taken;
    if (payload_.receiver == nullptr) return taken;
    const std::size_t written = payload_.receiver->write(offset, bytes.first(taken));
    NEXAR_ASSERT(written == taken, "a receiver takes all bytes of a payload on a lane");
    if (payload_came_ == payload_.bytes && payload_.receiver != nullptr) {
        std::exchange(payload_.receiver, nullptr)->finished(payload_.bytes);
    }
    return taken;
}

// Takes the front of `bytes`: payload, a unit, or the rest of a unit that began earlier.
Result<std::size_t> LaneReader::take_some(port::ConstBytes bytes) {
    if (payload_came_ != payload_.bytes) return take_payload(bytes);
    if (part_.empty()) {
        NEXAR_TRY_VALUE(taken, take_unit(bytes));
        if (taken == 0) part_.assign(bytes.begin(), bytes.end());
        return taken == 0 ? bytes.size() : taken;
    }
    // The first bytes of a unit tell its length; only bytes that belong to it are added.
    const std::size_t before = part_.size();
    while (true) {
        NEXAR_TRY_VALUE(size, started_ ? wire::frame_size(part_) : wire::preamble_size(part_));
        if (size <= part_.size()) break;
        const std::size_t added = part_.size() - before;
        const std::size_t more = std::min(size - part_.size(), bytes.size() - added);
        if (more == 0) return bytes.size();
        const auto next = bytes.subspan(added, more);
        part_.insert(part_.end(), next.begin(), next.end());
    }
    const std::size_t used = part_.size() - before;
    std::vector<std::byte> whole;
    whole.swap(part_);
    NEXAR_TRY_VALUE(taken, take_unit(whole));
    NEXAR_ASSERT(taken == whole.size());
    whole.clear();
    part_.swap(whole);  // keeps its memory
    return used;
}

std::size_t LaneReader::write(std::uint64_t /*offset*/, port::ConstBytes bytes) noexcept {
    port::ConstBytes rest = bytes;
    while (!rest.empty() && !broken_) {
        const auto taken = take_some(rest);
        if (!taken) {
            broken_ = true;
            taker_->violated(taken.error());
            break;
        }
        rest = rest.subspan(*taken);
    }
    return bytes.size();
}

}  // namespace nexar::engine

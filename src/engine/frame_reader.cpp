#include "engine/frame_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "wire/codec.hpp"

namespace nexar::engine {

namespace {

// Frames that travel often are shorter and are copied to the stack.
constexpr std::size_t kShortFrame = 128;

}  // namespace

void FrameReader::fail(const Error& error) {
    if (std::exchange(broken_, true)) return;
    taker_->violated(error);
}

Result<void> FrameReader::take_frame(const wire::FrameHeader& header, port::ConstBytes body,
                                     port::ConstBytes behind) {
    if (!wire::belongs_on(lane_, header.type)) {
        return Error(Errc::protocol_violation,
                     fmt::format("the peer sent a frame of type {} on the {} lane",
                                 wire::name(header.type), wire::name(lane_)));
    }
    if (header.type == wire::FrameType::moved) [[unlikely]] {
        NEXAR_TRY_VALUE(moved, wire::decode_body<wire::Moved>(header, body));
        moved_ = true;
        moved_to_ = moved.message.position;
        return {};
    }
    taker_->behind_ = behind;
    NEXAR_TRY_VALUE(payload, taker_->frame(header, body));
    payload_ = payload;
    payload_came_ = 0;
    return {};
}

std::size_t FrameReader::take_payload(port::ConstBytes bytes) {
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

/// Takes the front of `bytes`: payload, a frame, or the rest of a frame that began earlier.
Result<std::size_t> FrameReader::take_some(port::ConstBytes bytes) {
    if (payload_came_ != payload_.bytes) return take_payload(bytes);
    if (!part_.empty()) return take_more(bytes);
    if (lane_ == wire::Lane::eager) {
        if (const std::size_t taken = taker_->take_at_once(bytes); taken != 0) return taken;
    }
    return take_first(bytes);
}

Result<std::size_t> FrameReader::take_first(port::ConstBytes bytes) {
    std::array<std::byte, kShortFrame> copy;  // not initialised: only the copied part is read
    const std::size_t copied = std::min(bytes.size(), copy.size());
    std::memcpy(copy.data(), bytes.data(), copied);
    const port::ConstBytes front = port::ConstBytes(copy).first(copied);
    if (copied >= wire::kFrameHeaderBytes) {
        NEXAR_TRY_VALUE(header, wire::decode_frame_header(front));
        const port::ConstBytes body = front.subspan(wire::kFrameHeaderBytes);
        const std::size_t size = wire::kFrameHeaderBytes + header.body_bytes;
        if (size <= copied) {
            NEXAR_TRY(take_frame(header, body.first(header.body_bytes), bytes.subspan(size)));
            return size;
        }
    }
    part_.assign(front.begin(), front.end());
    if (copied == bytes.size()) return copied;
    NEXAR_TRY_VALUE(more, take_more(bytes.subspan(copied)));
    return copied + more;
}

Result<std::size_t> FrameReader::take_more(port::ConstBytes bytes) {
    // The first bytes of a frame tell its length; only bytes that belong to it are added.
    const std::size_t before = part_.size();
    while (true) {
        NEXAR_TRY_VALUE(size, wire::frame_size(part_));
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
    NEXAR_TRY_VALUE(header, wire::decode_frame_header(whole));
    const port::ConstBytes body = port::ConstBytes(whole).subspan(wire::kFrameHeaderBytes);
    NEXAR_TRY(take_frame(header, body, bytes.subspan(used)));
    whole.clear();
    part_.swap(whole);  // keeps its memory
    return used;
}

std::size_t FrameReader::read(port::ConstBytes bytes) noexcept {
    port::ConstBytes rest = bytes;
    while (!rest.empty() && !broken_) {
        const auto taken = take_some(rest);
        if (!taken) {
            fail(taken.error());
            break;
        }
        rest = rest.subspan(*taken);
        position_ += *taken;
        if (!moved_) continue;
        if (moved_to_ == position_) return bytes.size() - rest.size();
        moved_ = false;
        fail(Error(Errc::protocol_violation,
                   fmt::format("the peer moved the {} lane at byte {} and called it byte {}",
                               wire::name(lane_), position_, moved_to_)));
    }
    return bytes.size();
}

}  // namespace nexar::engine

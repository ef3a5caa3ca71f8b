#include "support/said.hpp"

#include "wire/scalar.hpp"

namespace nexar::testing {

Bytes with_size(Bytes frame, std::uint64_t size) {
    constexpr std::size_t kAt = wire::kFrameHeaderBytes + 24;  // see docs/protocol.md
    NEXAR_ASSERT(frame.size() >= wire::kMessageHeaderFrameBytes);
    wire::store(frame.data() + kAt, size);
    return frame;
}

Bytes operator+(Bytes front, std::span<const std::byte> back) {
    front.insert(front.end(), back.begin(), back.end());
    return front;
}

std::vector<wire::AnyMessage> frames_in(std::span<const std::byte> lane) {
    std::vector<wire::AnyMessage> frames;
    if (lane.size() < wire::kPreambleBytes) return frames;
    lane = lane.subspan(wire::kPreambleBytes);
    while (!lane.empty()) {
        const std::size_t size = wire::frame_size(lane).value();
        frames.push_back(wire::decode_frame(lane.first(size)).value().message);
        lane = lane.subspan(size);
        if (const auto* eager = std::get_if<wire::EagerHeader>(&frames.back())) {
            lane = lane.subspan(static_cast<std::size_t>(eager->size));
        } else if (const auto* part = std::get_if<wire::CollectiveHeader>(&frames.back())) {
            if (part->place == wire::PayloadPlace::lane) lane = lane.subspan(part->size);
        } else if (const auto* request = std::get_if<wire::Request>(&frames.back())) {
            if (request->place == wire::PayloadPlace::lane) lane = lane.subspan(request->size);
        } else if (const auto* response = std::get_if<wire::Response>(&frames.back())) {
            if (response->place == wire::PayloadPlace::lane) lane = lane.subspan(response->size);
        }
    }
    return frames;
}

}  // namespace nexar::testing

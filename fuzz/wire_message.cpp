#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness.hpp"
#include "wire/codec.hpp"
#include "wire_oracle.hpp"

/// The decoder of one message, NEXAR_FUZZ_MESSAGE. Inputs are frames whose version, type and
/// body_bytes are put right before decoding, so that no execution is lost on them.
namespace nexar::fuzz {

namespace {

using Message = wire::NEXAR_FUZZ_MESSAGE;

void put_right(std::vector<std::byte>& frame) {
    const std::size_t body = frame.size() - wire::kFrameHeaderBytes;
    frame[0] = std::byte{wire::kProtocolVersion};
    frame[1] = static_cast<std::byte>(Message::kType);
    for (unsigned i = 0; i < 4; ++i) frame[4 + i] = static_cast<std::byte>(body >> (8 * i));
}

}  // namespace

bool accepts(std::span<const std::byte> input) {
    if (input.size() < wire::kFrameHeaderBytes) return false;
    std::vector<std::byte> frame(input.begin(), input.end());
    put_right(frame);
    const auto header = wire::decode_frame_header(frame);
    if (!header) return false;
    const auto decoded = wire::decode_body<Message>(
        *header, std::span<const std::byte>(frame).subspan(wire::kFrameHeaderBytes));
    if (!decoded) return false;
    check_canonical(frame, decoded->message, decoded->skipped_fields != 0);
    return true;
}

}  // namespace nexar::fuzz

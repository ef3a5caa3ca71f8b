#include <cstddef>
#include <span>
#include <variant>

#include "harness.hpp"
#include "wire/codec.hpp"
#include "wire_oracle.hpp"

/// Frame headers, the choice of the decoder, and reading frames from a stream.
namespace nexar::fuzz {

namespace {

// frame_size must lead a reader of a stream to the frame, from whatever it has so far.
void check_stream(std::span<const std::byte> frame) {
    for (const std::size_t have : {std::size_t{0}, std::size_t{7}, std::size_t{8}, frame.size()}) {
        const auto size = wire::frame_size(frame.first(have));
        NEXAR_ASSERT(size.has_value(), "the beginning of a frame that decodes is no error");
        NEXAR_ASSERT(
            *size == (have < wire::kFrameHeaderBytes ? wire::kFrameHeaderBytes : frame.size()),
            "as far as the first bytes tell");
    }
    NEXAR_ASSERT(!wire::decode_frame(frame.first(frame.size() - 1)), "a frame has one length");
}

}  // namespace

bool accepts_frame(std::span<const std::byte> input) {
    const auto frame = wire::decode_frame(input);
    if (!frame) return false;
    check_stream(input);
    std::visit(
        [&](const auto& message) { check_canonical(input, message, frame->skipped_fields != 0); },
        frame->message);
    return true;
}

}  // namespace nexar::fuzz

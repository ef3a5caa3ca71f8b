#include <cstddef>
#include <span>
#include <variant>

#include "harness.hpp"
#include "wire/codec.hpp"
#include "wire_oracle.hpp"

/// Frame headers, the choice of decoder, and reading frames from a stream.
namespace nexar::fuzz {

namespace {

// frame_size must lead a stream reader to the whole frame, however much of it has arrived.
void check_stream(std::span<const std::byte> frame) {
    for (const std::size_t have : {std::size_t{0}, std::size_t{7}, std::size_t{8}, frame.size()}) {
        const auto size = wire::frame_size(frame.first(have));
        NEXAR_ASSERT(size.has_value(), "a prefix of a valid frame must not be an error");
        NEXAR_ASSERT(
            *size == (have < wire::kFrameHeaderBytes ? wire::kFrameHeaderBytes : frame.size()),
            "the size must be as far as the prefix determines it");
    }
    NEXAR_ASSERT(!wire::decode_frame(frame.first(frame.size() - 1)),
                 "a frame must have only one length");
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

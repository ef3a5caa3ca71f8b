#include "wire/plain_envelope.hpp"

#include <fmt/format.h>

#include "base/try.hpp"
#include "wire/codec.hpp"

namespace nexar::wire {

Result<EnvelopeView> decode_unusual_envelope(std::span<const std::byte> datagram) {
    NEXAR_TRY_VALUE(header, decode_frame_header(datagram));
    if (header.type != FrameType::envelope) {
        return Error(Errc::malformed,
                     fmt::format("the frame is of type {}, not an envelope", name(header.type)));
    }
    const auto body = datagram.subspan(kFrameHeaderBytes);
    NEXAR_TRY_VALUE(decoded, decode_body<EnvelopeFrame>(header, body));
    const auto packet = datagram.subspan(kEnvelopeBytes, decoded.message.packet.size());
    return EnvelopeView{static_cast<const Envelope&>(decoded.message), packet};
}

}  // namespace nexar::wire

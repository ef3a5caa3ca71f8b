#include "wire/routing_messages.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "wire/codec.hpp"

namespace nexar::wire {

std::vector<std::byte> signed_bytes(const ClusterId& cluster, const LinkState& state) {
    constexpr std::string_view kPurpose = "nexar link state 1";
    const std::vector<std::byte> frame = to_bytes(state);
    const auto body = std::span(frame).subspan(kFrameHeaderBytes);
    std::vector<std::byte> bytes;
    bytes.reserve(kPurpose.size() + 1 + ClusterId::kBytes + body.size());
    std::ranges::copy(std::as_bytes(std::span(kPurpose)), std::back_inserter(bytes));
    bytes.push_back(std::byte{0});  // so that no purpose is a prefix of another
    std::ranges::copy(cluster.bytes(), std::back_inserter(bytes));
    std::ranges::copy(body.first(body.size() - state.signature.size()), std::back_inserter(bytes));
    return bytes;
}

}  // namespace nexar::wire

#include "runtime/context_id.hpp"

#include <algorithm>
#include <array>

#include "security/digest.hpp"
#include "wire/scalar.hpp"

namespace nexar::runtime {

ContextId context_id(const ClusterId& cluster, const wire::ContextOrigin& origin) {
    std::array<std::byte, ClusterId::kBytes + 4 * sizeof(std::uint64_t)> text{};
    std::ranges::copy(cluster.bytes(), text.begin());
    std::byte* at = text.data() + ClusterId::kBytes;
    for (const std::uint64_t number :
         {origin.parent.value(), origin.creation, origin.colour, origin.epoch.value()}) {
        wire::store(at, number);
        at += sizeof number;
    }
    return ContextId(wire::load<std::uint64_t>(security::sha256(text).data()));
}

}  // namespace nexar::runtime

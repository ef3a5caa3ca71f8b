#include "runtime/context_id.hpp"

#include <gnutls/crypto.h>

#include <algorithm>
#include <array>

#include "base/assert.hpp"
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
    std::array<std::byte, 32> digest{};
    const int code = gnutls_hash_fast(GNUTLS_DIG_SHA256, text.data(), text.size(), digest.data());
    NEXAR_ASSERT(code == 0);
    return ContextId(wire::load<std::uint64_t>(digest.data()));
}

}  // namespace nexar::runtime

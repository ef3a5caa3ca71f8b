// The one table that names the kinds of links. The simulator is not in it: only tests use it.

#include "link/carriers.hpp"

#include <array>
#include <utility>

#include "link/quic/open_carrier.hpp"
#include "link/shm/open_carrier.hpp"

namespace nexar::link {

namespace {

constexpr std::array kKinds{
    CarrierKind{.name = "quic", .open = &quic::open_carrier},
    CarrierKind{.name = "shm", .open = &shm::open_carrier},
};

}  // namespace

std::span<const CarrierKind> carrier_kinds() noexcept {
    return kKinds;
}

Result<std::unique_ptr<port::Carrier>> open_carrier(BufferPool& pool, CarrierOptions options) {
    return kKinds.front().open(pool, std::move(options));
}

}  // namespace nexar::link

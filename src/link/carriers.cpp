// The one table that names the kinds of links. The simulator is not in it: only tests use it.

#include "link/carriers.hpp"

#include <array>
#include <utility>

#include "base/log.hpp"
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

std::vector<FurtherCarrier> open_further_carriers(BufferPool& pool, const CarrierOptions& options) {
    constexpr unsigned kNumbersPerKind = 56;  // bits
    std::vector<FurtherCarrier> opened;
    for (std::size_t i = 1; i < kKinds.size(); ++i) {
        CarrierOptions own{.settings = options.settings,
                           .first_link = (std::uint64_t{i} << kNumbersPerKind) + 1,
                           .random = options.random};
        auto carrier = kKinds[i].open(pool, std::move(own));
        if (carrier) {
            opened.push_back({.kind = kKinds[i].name, .carrier = *std::move(carrier)});
        } else {
            NEXAR_LOG_INFO("this node has no {} links: {}", kKinds[i].name,
                           carrier.error().cause());
        }
    }
    return opened;
}

}  // namespace nexar::link

#include "link/shm/open_carrier.hpp"

#include <utility>

#include "base/try.hpp"
#include "link/shm/carrier.hpp"

namespace nexar::shm {

LinkOptions link_options(const link::LinkSettings& settings) noexcept {
    LinkOptions options;
    options.linger = settings.linger;
    return options;
}

Result<std::unique_ptr<port::Carrier>> open_carrier(BufferPool& /*pool*/,
                                                    link::CarrierOptions options) {
    LinkOptions chosen = link_options(options.settings);
    chosen.first_link = options.first_link;
    NEXAR_TRY_VALUE(carrier, Carrier::open(chosen, std::move(options.random)));
    return std::unique_ptr<port::Carrier>(std::move(carrier));
}

}  // namespace nexar::shm

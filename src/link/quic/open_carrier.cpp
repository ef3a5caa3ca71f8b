#include "link/quic/open_carrier.hpp"

#include <utility>

#include "base/try.hpp"
#include "link/quic/udp_carrier.hpp"

namespace nexar::quic {

EndpointOptions endpoint_options(link::CarrierOptions options) {
    EndpointOptions made;
    made.credentials = std::move(options.credentials);
    made.accepts_joiners = options.accepts_joiners;
    made.link.protection = options.settings.protection;
    made.link.idle_timeout = options.settings.idle_timeout;
    made.link.keep_alive = options.settings.keep_alive;
    made.link.linger = options.settings.linger;
    made.secret = std::move(options.restart_secret);
    made.wall_clock = std::move(options.wall_clock);
    made.random = std::move(options.random);
    return made;
}

UdpOptions udp_options(const link::LinkSettings& settings) noexcept {
    UdpOptions options;
    options.receive_buffer = settings.receive_buffer;
    return options;
}

Result<std::unique_ptr<port::Carrier>> open_carrier(BufferPool& pool,
                                                    link::CarrierOptions options) {
    const Address local = options.local;
    const UdpOptions udp = udp_options(options.settings);
    NEXAR_TRY_VALUE(carrier,
                    UdpCarrier::open(local, pool, endpoint_options(std::move(options)), udp));
    return std::unique_ptr<port::Carrier>(std::move(carrier));
}

}  // namespace nexar::quic

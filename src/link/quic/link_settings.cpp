#include "link/quic/link_settings.hpp"

namespace nexar::quic {

LinkOptions link_options(const Config& config) noexcept {
    LinkOptions options;
    if (config.choice("protection") == "none") options.protection = Protection::none;
    options.idle_timeout = config.duration("link_idle_timeout");
    // Nine may be lost before the link is, and the host of a process that was killed gets something
    // to refuse soon.
    options.keep_alive = options.idle_timeout / 10;
    return options;
}

UdpOptions udp_options(const Config& config) noexcept {
    UdpOptions options;
    options.receive_buffer = static_cast<std::size_t>(config.size("udp_buffer"));
    return options;
}

}  // namespace nexar::quic

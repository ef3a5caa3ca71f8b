#include "link/common/carrier_options.hpp"

namespace nexar::link {

LinkSettings link_settings(const Config& config) noexcept {
    LinkSettings settings;
    if (config.choice("protection") == "none") settings.protection = port::Protection::none;
    settings.idle_timeout = config.duration("link_idle_timeout");
    // Nine keep-alives in a row may be lost before the link times out. They also soon give the host
    // of a killed process a packet to refuse.
    settings.keep_alive = settings.idle_timeout / 10;
    settings.receive_buffer = static_cast<std::size_t>(config.size("udp_buffer"));
    return settings;
}

}  // namespace nexar::link

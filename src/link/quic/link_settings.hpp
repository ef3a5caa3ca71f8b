#pragma once

#include "base/config.hpp"
#include "link/quic/options.hpp"
#include "link/quic/udp_socket.hpp"

namespace nexar::quic {

// The values of a Config of kSettings as the link takes them.

LinkOptions link_options(const Config& config) noexcept;

UdpOptions udp_options(const Config& config) noexcept;

}  // namespace nexar::quic

#pragma once

#include <memory>
#include <nexar/result.hpp>

#include "base/buffer_pool.hpp"
#include "link/common/carrier_options.hpp"
#include "link/quic/endpoint.hpp"
#include "link/quic/udp_socket.hpp"
#include "port/link.hpp"

namespace nexar::quic {

/// The row of QUIC in link/carriers.cpp.
Result<std::unique_ptr<port::Carrier>> open_carrier(BufferPool& pool, link::CarrierOptions options);

/// The options that the endpoint and the socket of that carrier get.
EndpointOptions endpoint_options(link::CarrierOptions options);
UdpOptions udp_options(const link::LinkSettings& settings) noexcept;

}  // namespace nexar::quic

#pragma once

#include <nexar/result.hpp>
#include <string>
#include <vector>

#include "base/address.hpp"

namespace nexar::runtime {

/// The addresses at which a socket bound to `bound` can be reached: `bound` itself or, if it is the
/// any-address, every address of this host's interfaces that are up, loopback last. Link-local
/// addresses are left out. At most wire::kMaxAddresses.
std::vector<Address> reachable_addresses(const Address& bound);

/// The addresses of "host:port"; a numeric address needs no resolver. An Error (bad_config) names
/// the host and the resolver's message.
Result<std::vector<Address>> resolve(const std::string& host_port);

/// This host's name, for messages; at most wire::kMaxHostBytes.
std::string host_name();

}  // namespace nexar::runtime

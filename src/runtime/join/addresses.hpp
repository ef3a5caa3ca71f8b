#pragma once

#include <nexar/result.hpp>
#include <string>
#include <vector>

#include "base/address.hpp"

namespace nexar::runtime {

/// Where a socket that is bound to `bound` can be reached: that address, or for one that listens on
/// all of them every address of this host's interfaces that are up, loopback last. Addresses that
/// mean something only on one link are left out. At most wire::kMaxAddresses.
std::vector<Address> reachable_addresses(const Address& bound);

/// Addresses of "host:port"; numbers need no resolver. An Error (bad_config) names the host and
/// what the resolver said.
Result<std::vector<Address>> resolve(const std::string& host_port);

/// This host's name, for people; at most wire::kMaxHostBytes.
std::string host_name();

}  // namespace nexar::runtime

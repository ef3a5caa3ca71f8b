#pragma once

#include <span>
#include <vector>

#include "base/address.hpp"

namespace nexar {

/// Sorts the addresses of a peer in the order in which a node with the addresses `own` should try
/// them. If both seem to share a host (most of their addresses are equal), loopback comes first.
/// Addresses in a network that both are in follow, then all others. If the peer is on another host,
/// loopback and addresses that this node also has come last. The sort is stable.
///
/// This is only a heuristic: identities are verified, so a wrong guess costs time and nothing else.
std::vector<Address> best_first(std::span<const Address> addresses, std::span<const Address> own);

/// True if a node with these addresses seems to be on the host with the addresses `own`: most
/// non-loopback addresses are equal, or there are none.
bool seem_to_share_host(std::span<const Address> addresses, std::span<const Address> own);

}  // namespace nexar

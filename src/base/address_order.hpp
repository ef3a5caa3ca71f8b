#pragma once

#include <span>
#include <vector>

#include "base/address.hpp"

namespace nexar {

/// The addresses of another node in the order in which they are worth trying, from one that has the
/// addresses `own`: loopback first where both seem to be on one host, which is where most of the
/// addresses are the same; then those of a network that both are in, then the others. Of another
/// host come last loopback and the addresses that this one has, too. Among equals the order stays.
///
/// A guess at what is best, and only a guess: identities are checked, so a wrong one costs time and
/// nothing else.
std::vector<Address> best_first(std::span<const Address> addresses, std::span<const Address> own);

/// Whether a node with these addresses seems to be on the host that has the addresses `own`: most
/// of the addresses that are not loopback are the same, or there are no others.
bool seem_to_share_host(std::span<const Address> addresses, std::span<const Address> own);

}  // namespace nexar

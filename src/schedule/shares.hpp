#pragma once

#include "schedule/request.hpp"

/// Two-level algorithms in which several ranks of each host exchange with other hosts, each for its
/// share of the vector.
namespace nexar::schedule::shares {

Schedule all_reduce(const Request& request);
Schedule reduce(const Request& request);
Schedule broadcast(const Request& request);
Schedule all_gather(const Request& request);
Schedule gather(const Request& request);
Schedule scatter(const Request& request);
Schedule reduce_scatter(const Request& request);

}  // namespace nexar::schedule::shares

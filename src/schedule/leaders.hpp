#pragma once

#include "schedule/request.hpp"

/// Two-level algorithms in which one rank of each host, its leader, exchanges with other hosts.
namespace nexar::schedule::leaders {

Schedule all_reduce(const Request& request);
Schedule reduce(const Request& request);
Schedule broadcast(const Request& request);
Schedule all_gather(const Request& request);
Schedule gather(const Request& request);
Schedule scatter(const Request& request);
Schedule barrier(const Request& request);

}  // namespace nexar::schedule::leaders

#pragma once

#include "schedule/request.hpp"

/// Schedules along the spanning tree Request::tree, for sparse topologies: ranks exchange messages
/// only with their neighbours in the tree. Cost terms: n = world, S = elements of the vector,
/// d = depth of the tree.
namespace nexar::schedule::spanning {

Schedule broadcast(const Request& request);
Schedule reduce(const Request& request);
Schedule all_reduce(const Request& request);
Schedule gather(const Request& request);
Schedule scatter(const Request& request);
Schedule all_gather(const Request& request);
Schedule barrier(const Request& request);

}  // namespace nexar::schedule::spanning

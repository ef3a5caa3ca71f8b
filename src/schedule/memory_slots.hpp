#pragma once

#include "schedule/request.hpp"

/// Algorithms in memory with one stage: every rank puts its part into its segment, and the ranks
/// that need it read it there.
namespace nexar::schedule::slots {

Schedule all_reduce(const Request& request);
Schedule reduce(const Request& request);
Schedule broadcast(const Request& request);
Schedule all_gather(const Request& request);
Schedule gather(const Request& request);
Schedule scatter(const Request& request);
Schedule reduce_scatter(const Request& request);
Schedule all_to_all(const Request& request);
Schedule scan(const Request& request);
Schedule exclusive_scan(const Request& request);
Schedule barrier(const Request& request);

}  // namespace nexar::schedule::slots

/// Algorithms in memory with two stages: every rank folds one slice of the vector.
namespace nexar::schedule::slices {

Schedule all_reduce(const Request& request);
Schedule reduce(const Request& request);

}  // namespace nexar::schedule::slices

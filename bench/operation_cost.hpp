#pragma once

#include "report.hpp"

namespace nexar::bench {

/// Prints what the steps of an 8-byte message and of an 8-byte all-reduce in shared memory cost,
/// and the whole operations of two nodes that one thread drives. Nothing waits for another
/// processor in any of them, so that all of it is work.
void report_operation_cost(Report& report);

}  // namespace nexar::bench

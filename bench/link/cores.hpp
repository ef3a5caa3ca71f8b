#pragma once

#include <cstddef>
#include <vector>

namespace nexar::bench {

/// The cores on which this thread may run.
std::vector<std::size_t> allowed_cores();

/// Pins the calling thread, and all threads that it creates from now on.
void pin_thread(std::size_t core);

}  // namespace nexar::bench

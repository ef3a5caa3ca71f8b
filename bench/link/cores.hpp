#pragma once

#include <cstddef>
#include <vector>

namespace nexar::bench {

/// The cores that this thread may use now.
std::vector<std::size_t> allowed_cores();

/// The calling thread, and those that it makes from now on.
void pin_thread(std::size_t core);

}  // namespace nexar::bench

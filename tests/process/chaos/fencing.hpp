#pragma once

#include <cstdint>
#include <string>

namespace nexar::chaos {

/// Members are stopped, evicted and continued; they go on to use their old communicators, shared
/// buffers and calls. Reports to GoogleTest if any of that succeeds or changes a result of the
/// others.
void evict_and_continue(const std::string& link, int times, std::uint64_t seed);

}  // namespace nexar::chaos

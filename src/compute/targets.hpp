#pragma once

#include <string_view>
#include <vector>

namespace nexar::compute {

/// The instruction sets that kernels were compiled for and this CPU has, best first; the names are
/// Highway's ("AVX3", "NEON", ...).
std::vector<std::string_view> kernel_targets();

/// The one that reducers obtained from now on use.
std::string_view kernel_target();

/// For tests: makes reducers obtained from now on use this target, one of kernel_targets(). An
/// empty name returns to the best one. Not for use while other threads obtain reducers.
void use_kernel_target(std::string_view target);

}  // namespace nexar::compute

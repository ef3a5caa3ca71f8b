#pragma once

#include <string_view>
#include <vector>

namespace nexar::compute {

/// The instruction sets for which kernels were compiled and that this CPU has, best first, by their
/// Highway names ("AVX3", "NEON", ...).
std::vector<std::string_view> kernel_targets();

/// The target that newly obtained reducers use.
std::string_view kernel_target();

/// For tests: makes newly obtained reducers use this target, one of kernel_targets(). An empty name
/// selects the best one again. Must not run while other threads obtain reducers.
void use_kernel_target(std::string_view target);

}  // namespace nexar::compute

#include "compute/targets.hpp"

#include <hwy/highway.h>

#include <cstdint>

#include "base/assert.hpp"

namespace nexar::compute {

namespace {

constexpr bool kOneTarget = (HWY_TARGETS & (HWY_TARGETS - 1)) == 0;

// Lower bits are better targets; 0 if there are none.
std::int64_t best_of(std::int64_t targets) {
    return targets & -targets;
}

void restrict_to([[maybe_unused]] std::int64_t targets) {
    if constexpr (!kOneTarget) hwy::SetSupportedTargetsForTest(targets);
}

}  // namespace

std::vector<std::string_view> kernel_targets() {
    std::vector<std::string_view> names;
    for (std::int64_t left = HWY_SUPPORTED_TARGETS & HWY_TARGETS; left != 0;
         left &= ~best_of(left)) {
        names.emplace_back(hwy::TargetName(best_of(left)));
    }
    return names;
}

std::string_view kernel_target() {
    return hwy::TargetName(best_of(HWY_SUPPORTED_TARGETS & HWY_TARGETS));
}

void use_kernel_target(std::string_view target) {
    restrict_to(0);
    if (target.empty()) return;
    for (std::int64_t left = HWY_SUPPORTED_TARGETS & HWY_TARGETS; left != 0;
         left &= ~best_of(left)) {
        if (target != hwy::TargetName(best_of(left))) continue;
        return restrict_to(best_of(left));
    }
    NEXAR_ASSERT(false, "kernels were not compiled for this target, or the CPU lacks it");
}

}  // namespace nexar::compute

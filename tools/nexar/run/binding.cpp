#include "run/binding.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>

namespace nexar::run {

namespace {

/// More than any kernel supports.
constexpr std::size_t kMostProcessors = std::size_t{1} << 16U;
constexpr std::size_t kMaskBytes = kMostProcessors / 8;

using Mask = std::vector<cpu_set_t>;

Mask empty_mask() {
    return Mask(kMaskBytes / sizeof(cpu_set_t));  // zero
}

}  // namespace

std::vector<std::size_t> own_processors() {
    Mask mask = empty_mask();
    std::vector<std::size_t> processors;
    if (::sched_getaffinity(0, kMaskBytes, mask.data()) != 0) return processors;
    for (std::size_t i = 0; i < kMostProcessors; ++i) {
        if (CPU_ISSET_S(i, kMaskBytes, mask.data())) processors.push_back(i);
    }
    return processors;
}

std::vector<std::size_t> share_of(const std::vector<std::size_t>& processors, std::uint32_t local,
                                  std::uint32_t count) {
    if (count == 0 || count > processors.size()) return {};
    const auto edge = [&](std::uint32_t rank) {
        return processors.begin() + static_cast<std::ptrdiff_t>(processors.size() * rank / count);
    };
    return {edge(local), edge(local + 1)};
}

void bind_to(const std::vector<std::size_t>& processors) noexcept {
    if (processors.empty()) return;
    Mask mask = empty_mask();
    for (const std::size_t one : processors) CPU_SET_S(one, kMaskBytes, mask.data());
    // A processor may have gone offline. A rank that runs anywhere is better than none.
    (void)::sched_setaffinity(0, kMaskBytes, mask.data());
}

}  // namespace nexar::run

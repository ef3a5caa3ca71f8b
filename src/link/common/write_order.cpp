#include "link/common/write_order.hpp"

#include <algorithm>
#include <bit>

namespace nexar::link {

std::optional<WriteClass> WriteOrder::next(ClassSet ready) const noexcept {
    if (ready == 0) return std::nullopt;
    const auto first = static_cast<std::size_t>(std::countr_zero(ready));
    for (std::size_t lower = first + 1; lower < kWriteClasses; ++lower) {
        const auto candidate = static_cast<WriteClass>(lower);
        if ((ready & bit(candidate)) != 0 && owed_[lower] >= kQuantumBytes * kFloorDivisor) {
            return candidate;
        }
    }
    return static_cast<WriteClass>(first);
}

void WriteOrder::wrote(WriteClass of, std::size_t bytes, ClassSet ready) noexcept {
    const auto written = static_cast<std::size_t>(of);
    for (std::size_t other = 0; other < kWriteClasses; ++other) {
        if ((ready & bit(static_cast<WriteClass>(other))) == 0) {
            owed_[other] = 0;  // an idle class does not accumulate credit
        } else if (other > written) {
            owed_[other] += bytes;
        }
    }
    owed_[written] -= std::min(owed_[written], bytes * kFloorDivisor);
}

}  // namespace nexar::link

#include "engine/operation.hpp"

#include <algorithm>
#include <cstring>

namespace nexar::engine {

std::uint64_t ReceiveOperation::capacity() const noexcept {
    std::uint64_t total = 0;
    for (const port::Bytes region : content) total += region.size();
    return total;
}

port::Bytes ReceiveOperation::region(std::uint64_t offset, std::size_t bytes) noexcept {
    if (offset < region_begin_) {
        region_ = 0;
        region_begin_ = 0;
    }
    while (region_ < content.size() && region_begin_ + content[region_].size() <= offset) {
        region_begin_ += content[region_++].size();
    }
    if (region_ == content.size()) return {};
    const port::Bytes rest =
        content[region_].subspan(static_cast<std::size_t>(offset - region_begin_));
    return rest.first(std::min(rest.size(), bytes));
}

std::size_t ReceiveOperation::write(std::uint64_t offset, port::ConstBytes bytes) noexcept {
    std::size_t taken = 0;
    while (taken < bytes.size()) {
        const port::Bytes place = region(offset + taken, bytes.size() - taken);
        if (place.empty()) break;
        std::memcpy(place.data(), bytes.data() + taken, place.size());
        taken += place.size();
    }
    return taken;
}

}  // namespace nexar::engine

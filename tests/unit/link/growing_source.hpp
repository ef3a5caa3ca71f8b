#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "port/stream.hpp"

namespace nexar::testing {

/// Content in two regions that becomes ready from the front, in steps; the part that is not ready
/// holds other bytes.
class GrowingSource final : public port::Source {
public:
    GrowingSource(std::vector<std::byte> content, std::size_t first_region)
        : content_(std::move(content)), memory_(content_.size()) {
        std::ranges::transform(content_, memory_.begin(), [](std::byte byte) { return ~byte; });
        const port::ConstBytes all(memory_);
        regions_ = {all.first(first_region), all.subspan(first_region)};
    }
    GrowingSource(const GrowingSource&) = delete;
    GrowingSource& operator=(const GrowingSource&) = delete;

    /// Makes the content up to `bytes` ready; the test must wake the link.
    void grow_to(std::size_t bytes) {
        std::copy_n(content_.begin(), bytes, memory_.begin());
        ready_ = bytes;
    }

    std::uint64_t size() const noexcept override { return content_.size(); }
    std::span<const port::ConstBytes> regions() const noexcept override { return regions_; }
    std::uint64_t ready() const noexcept override { return ready_; }
    std::size_t fill(std::uint64_t /*offset*/, port::Bytes /*out*/) noexcept override { return 0; }

private:
    std::vector<std::byte> content_;
    std::vector<std::byte> memory_;
    std::array<port::ConstBytes, 2> regions_{};
    std::uint64_t ready_ = 0;
};

}  // namespace nexar::testing

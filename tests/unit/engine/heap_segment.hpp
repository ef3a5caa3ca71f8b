#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "port/shared_memory.hpp"

namespace nexar::testing {

/// A segment in memory of this process, aligned to a cache line.
class HeapSegment final : public port::SharedMemory, public port::PeerMemory {
public:
    explicit HeapSegment(std::size_t bytes) : lines_(bytes / sizeof(Line)) {}

    port::Bytes bytes() noexcept override { return std::as_writable_bytes(std::span(lines_)); }
    port::ConstBytes bytes() const noexcept override { return std::as_bytes(std::span(lines_)); }

private:
    struct alignas(64) Line {
        std::array<std::byte, 64> bytes{};
    };
    std::vector<Line> lines_;
};

inline std::vector<std::shared_ptr<HeapSegment>> heap_segments(std::uint32_t world,
                                                               std::size_t bytes) {
    std::vector<std::shared_ptr<HeapSegment>> all;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        all.push_back(std::make_shared<HeapSegment>(bytes));
    }
    return all;
}

inline std::vector<std::shared_ptr<const port::PeerMemory>> others_of(
    const std::vector<std::shared_ptr<HeapSegment>>& all, std::uint32_t me) {
    std::vector<std::shared_ptr<const port::PeerMemory>> others(all.begin(), all.end());
    others[me].reset();
    return others;
}

}  // namespace nexar::testing

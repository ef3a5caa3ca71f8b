#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace nexar::schedule {

/// How a buffer is divided among ranks: chunk i belongs to rank i, and chunks follow each other
/// without gaps. Counts are in elements. Cheap to copy.
class Chunks {
public:
    Chunks() = default;

    /// Divides `total` elements among `world` ranks; the first ranks get one more if there is a
    /// remainder. Needs no memory per rank.
    static Chunks even(std::uint64_t total, std::uint32_t world) {
        NEXAR_ASSERT(world > 0);
        Chunks chunks;
        chunks.world_ = world;
        chunks.each_ = total / world;
        chunks.extra_ = total % world;
        return chunks;
    }

    /// One count per rank; zeros are allowed, and the sum must fit into 64 bits.
    static Chunks of(std::span<const std::uint64_t> counts) {
        std::vector<std::uint64_t> offsets{0};
        offsets.reserve(counts.size() + 1);
        for (const std::uint64_t count : counts) {
            NEXAR_ASSERT(offsets.back() + count >= count, "elements overflow 64 bits");
            offsets.push_back(offsets.back() + count);
        }
        Chunks chunks;
        chunks.world_ = static_cast<std::uint32_t>(counts.size());
        chunks.offsets_ = std::make_shared<const std::vector<std::uint64_t>>(std::move(offsets));
        return chunks;
    }

    std::uint32_t world() const noexcept { return world_; }

    /// Where chunk i starts. offset(world()) is the end.
    std::uint64_t offset(std::uint32_t i) const {
        NEXAR_ASSERT(i <= world_);
        if (offsets_) return (*offsets_)[i];
        return i * each_ + std::min<std::uint64_t>(i, extra_);
    }

    std::uint64_t count(std::uint32_t i) const { return offset(i + 1) - offset(i); }
    std::uint64_t total() const { return offset(world_); }

    std::uint64_t largest() const {
        if (!offsets_) return each_ + (extra_ > 0 ? 1 : 0);
        std::uint64_t most = 0;
        for (std::uint32_t i = 0; i < world_; ++i) most = std::max(most, count(i));
        return most;
    }

private:
    std::uint32_t world_ = 0;
    std::uint64_t each_ = 0;
    std::uint64_t extra_ = 0;
    std::shared_ptr<const std::vector<std::uint64_t>> offsets_;  // null when even
};

}  // namespace nexar::schedule

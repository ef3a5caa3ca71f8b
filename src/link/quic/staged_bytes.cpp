#include "link/quic/staged_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/assert.hpp"
#include "base/try.hpp"

namespace nexar::quic {

namespace {
constexpr std::size_t kLeastChunk = std::size_t{16} * 1024;
constexpr std::size_t kMostChunk = std::size_t{64} * 1024;
}  // namespace

Result<void> StagedBytes::add_chunk(std::size_t wanted) {
    NEXAR_TRY_VALUE(buffer, pool_->checkout(std::clamp(wanted, kLeastChunk, kMostChunk)));
    chunks_.push_back({.buffer = std::move(buffer), .begin = end_, .used = 0});
    return {};
}

Result<port::Bytes> StagedBytes::room() {
    if (chunks_.empty() || chunks_.back().used == chunks_.back().buffer.size()) {
        NEXAR_TRY(add_chunk(chunks_.empty() ? kLeastChunk : kMostChunk));
    }
    Chunk& last = chunks_.back();
    return last.buffer.span().subspan(last.used);
}

void StagedBytes::commit(std::size_t bytes) noexcept {
    NEXAR_ASSERT(!chunks_.empty() && bytes <= chunks_.back().buffer.size() - chunks_.back().used);
    chunks_.back().used += bytes;
    end_ += bytes;
}

Result<void> StagedBytes::append(std::span<const port::ConstBytes> pieces) {
    const std::size_t total =
        std::accumulate(pieces.begin(), pieces.end(), std::size_t{0},
                        [](std::size_t sum, port::ConstBytes piece) { return sum + piece.size(); });
    // Allocate everything first, so that a failure changes nothing.
    const std::size_t chunks_before = chunks_.size();
    const std::size_t left =
        chunks_.empty() ? 0 : chunks_.back().buffer.size() - chunks_.back().used;
    for (std::size_t covered = left; covered < total; covered += chunks_.back().buffer.size()) {
        auto buffer = pool_->checkout(std::clamp(total - covered, kLeastChunk, kMostChunk));
        if (!buffer) {
            while (chunks_.size() > chunks_before) chunks_.pop_back();
            return buffer.error();
        }
        chunks_.push_back({.buffer = std::move(*buffer), .begin = end_ + covered, .used = 0});
    }
    std::size_t current = chunks_before == 0 ? 0 : chunks_before - 1;
    for (port::ConstBytes piece : pieces) {
        while (!piece.empty()) {
            if (chunks_[current].used == chunks_[current].buffer.size()) ++current;
            Chunk& chunk = chunks_[current];
            const std::size_t n = std::min(piece.size(), chunk.buffer.size() - chunk.used);
            std::memcpy(chunk.buffer.data() + chunk.used, piece.data(), n);
            chunk.used += n;
            end_ += n;
            piece = piece.subspan(n);
        }
    }
    return {};
}

port::ConstBytes StagedBytes::at(std::uint64_t offset) const noexcept {
    NEXAR_ASSERT(offset >= begin_ && offset <= end_);
    // There are few chunks, and the wanted one is nearly always the first or the last.
    for (const Chunk& chunk : chunks_) {
        if (offset >= chunk.begin && offset < chunk.begin + chunk.used) {
            const auto skip = static_cast<std::size_t>(offset - chunk.begin);
            return {chunk.buffer.data() + skip, chunk.used - skip};
        }
    }
    return {};
}

void StagedBytes::release_to(std::uint64_t offset) noexcept {
    NEXAR_ASSERT(offset >= begin_ && offset <= end_);
    begin_ = offset;
    while (chunks_.size() > 1 && chunks_.front().begin + chunks_.front().used <= begin_) {
        chunks_.pop_front();
    }
    if (chunks_.size() == 1 && begin_ == end_) {
        chunks_.front().begin = end_;
        chunks_.front().used = 0;
    }
}

void StagedBytes::clear() noexcept {
    chunks_.clear();
    begin_ = end_;
}

}  // namespace nexar::quic

#include "engine/run_memory.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace nexar::engine {

port::Bytes RunSpace::in_pieces(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    if (bytes == 0) return {};
    NEXAR_ASSERT(offset < size_, "a schedule stays within its buffers");
    const auto behind = std::ranges::upper_bound(pieces_, offset, {}, &Piece::begin);
    const Piece& piece = *std::prev(behind);
    const port::Bytes rest = piece.memory.subspan(static_cast<std::size_t>(offset - piece.begin));
    return rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), bytes)));
}

}  // namespace nexar::engine

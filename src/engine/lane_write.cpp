#include "engine/lane_write.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace nexar::engine {

namespace {

// Regions of a payload that are shown to the link one by one; more are gathered first.
constexpr std::size_t kMaxPieces = 16;

}  // namespace

bool write_with_payload(port::Link& link, port::ConstBytes frame,
                        std::span<const port::ConstBytes> payload) {
    std::array<port::ConstBytes, kMaxPieces + 1> pieces;
    pieces[0] = frame;
    if (payload.size() <= kMaxPieces) {
        std::ranges::copy(payload, pieces.begin() + 1);
        return link.write(port::Lane::eager, std::span(pieces).first(payload.size() + 1));
    }
    std::vector<std::byte> gathered;
    for (const port::ConstBytes piece : payload) {
        gathered.insert(gathered.end(), piece.begin(), piece.end());
    }
    pieces[1] = gathered;
    return link.write(port::Lane::eager, std::span(pieces).first(2));
}

}  // namespace nexar::engine

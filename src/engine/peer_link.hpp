#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/in_stream.hpp"
#include "engine/lane_reader.hpp"
#include "engine/out_stream.hpp"
#include "port/link.hpp"

namespace nexar::engine {

class PeerTransfers;

/// One of the links of a peer: the lanes that arrive on it, the parts of lanes written to it, and
/// the payload streams in both directions.
struct PeerLink {
    PeerLink(PeerTransfers& transfers, port::Link& opened) noexcept
        : owner(&transfers), link(&opened), eager_bytes(opened.speed().eager_bytes) {}

    /// A part of a lane that was written to this link.
    struct Part {
        std::uint64_t offset = 0;            // of its first byte on this link's lane
        std::uint64_t position = 0;          // of the same byte in the lane, see wire::Preamble
        std::optional<std::uint64_t> end{};  // position after its last byte; nullopt: it goes on
    };

    PeerTransfers* owner;
    port::Link* link;
    std::size_t eager_bytes;
    bool ready = false;  // the peer has the link too, so this side may use it
    std::array<std::unique_ptr<LaneReader>, port::kLanes> readers{};
    std::array<std::vector<Part>, port::kLanes> parts{};  // in order
    std::unordered_map<std::uint64_t, std::unique_ptr<InStream>> streams_in{};
    std::unordered_map<std::uint64_t, OutStream*> streams_out{};
    /// Released because the link is about to go down, and not cancelled: sent again on another
    /// link.
    std::vector<OutStream*> stranded{};
};

}  // namespace nexar::engine

#pragma once

#include <cstddef>
#include <vector>

#include "base/identity.hpp"

namespace nexar::port {

/// A packet between the carriers of two members, which other members relay. Only its two ends can
/// read it. It may be lost, repeated or overtaken by others, as any packet of a network.
struct TunnelPacket {
    NodeId to{};
    std::vector<std::byte> bytes{};
};

}  // namespace nexar::port

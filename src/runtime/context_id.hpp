#pragma once

#include <cstdint>
#include <nexar/types.hpp>

#include "base/identity.hpp"

namespace nexar::runtime {

/// What makes a communicator the one that it is, on every member alike.
struct ContextOrigin {
    ClusterId cluster{};
    ContextId parent{};          // 0 for a world
    std::uint64_t creation = 0;  // its number among those made from the parent
    std::uint64_t colour = 0;
    Epoch epoch{};  // of a world
};

/// The first 64 bits of SHA-256 over the origin.
ContextId context_id(const ContextOrigin& origin);

}  // namespace nexar::runtime

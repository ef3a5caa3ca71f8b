#pragma once

#include <cstdint>
#include <nexar/error.hpp>
#include <string>

#include "base/types.hpp"
#include "engine/engine.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

// Texts that tell ranks and users which collectives were called and how they failed.

/// Describes a call: "all_reduce f32 x 1024 sum", "broadcast opaque[24 B] x 3, root 0".
std::string call_text(const CollectiveTerms& terms);

/// The call of a rank, as described by CollectiveRunner::description_of.
struct Called {
    Rank rank{};
    std::string description{};
};

/// "all_reduce #118: rank 2 called f32 x 1024 sum; rank 0 called f32 x 1000 sum"
std::string difference(std::uint64_t number, const Called& a, const Called& b);

/// The frame that tells the members of a communicator that one of its operations failed.
wire::CollectiveAbort abort_of(const Context& context, std::uint64_t number, const Error& error);

}  // namespace nexar::engine

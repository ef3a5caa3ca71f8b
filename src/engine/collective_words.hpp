#pragma once

#include <cstdint>
#include <nexar/error.hpp>
#include <string>

#include "base/types.hpp"
#include "engine/engine.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

// How ranks tell each other, and their users, what became of a collective.

/// What was called: "all_reduce f32 x 1024 sum", "broadcast opaque[24 B] x 3, root 0".
std::string call_text(const CollectiveTerms& terms);

/// What a rank called, as CollectiveRunner::description_of says it.
struct Called {
    Rank rank{};
    std::string description{};
};

/// "all_reduce #118: rank 2 called f32 x 1024 sum; rank 0 called f32 x 1000 sum"
std::string difference(std::uint64_t number, const Called& a, const Called& b);

/// What the members of a communicator hear when one of its operations failed.
wire::CollectiveAbort abort_of(const Context& context, std::uint64_t number, const Error& error);

}  // namespace nexar::engine

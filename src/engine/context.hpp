#pragma once

#include <cstdint>
#include <memory>
#include <nexar/error.hpp>
#include <optional>
#include <utility>
#include <vector>
#include "base/types.hpp"

#include "engine/collective.hpp"
#include "engine/intrusive_list.hpp"
#include "engine/matcher.hpp"
#include "engine/memory_setup.hpp"
#include "engine/operation.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

struct Pair;

/// A communicator, as the engine knows it.
struct Context {
    Context(ContextId name, Rank own, std::uint32_t world, std::uint64_t seed)
        : id(name), me(own), pairs(world), matcher(world, seed) {}

    ContextId id;
    wire::ContextOrigin origin{};
    Rank me;
    std::uint16_t index = 0;      // among the communicators of this process, see Recording
    std::vector<Pair*> pairs;     // by rank; nullptr for this node itself
    std::uint64_t creations = 0;  // communicators made from this one
    /// Members whose rank in the cluster is lower were taken into this communicator, or into one
    /// that it was made from. If they are not in this one now, they do not wait to be taken in.
    Rank newcomers_from{};
    /// Why every operation of this communicator fails: it lost a member, or a rank revoked it.
    std::optional<Error> over{};
    bool revoked = false;
    std::vector<std::pair<Epoch, Rank>> lost{};  // members that were evicted, in order

    // Messages.
    Matcher matcher;
    IntrusiveList<ProbeOperation, &ProbeOperation::probe_hook> probes{};
    bool alone_told = false;  // see Messages::warn_if_alone()

    ContextCollectives collectives{};
    std::unique_ptr<MemorySetup> memory_setup{};  // nullptr: not wanted, or over
};

}  // namespace nexar::engine

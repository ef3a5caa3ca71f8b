#pragma once

#include <cstdint>
#include <vector>
#include "base/types.hpp"

#include "wire/frame.hpp"
#include "wire/seed_messages.hpp"

/// The messages about communicators, which the engine calls contexts.
namespace nexar::wire {

/// Identifies a communicator, equally on all members, together with the cluster, which both sides
/// know from their certificates.
struct ContextOrigin {
    ContextId parent{};          // 0 for a world
    std::uint64_t creation = 0;  // its number among those created from the parent
    std::uint64_t colour = 0;
    Epoch epoch{};  // of a world

    friend bool operator==(const ContextOrigin&, const ContextOrigin&) noexcept = default;
};

/// Precedes the first message of a communicator. The context id is short and could collide, so both
/// sides compare the full origin.
struct ContextBegin {
    static constexpr FrameType kType = FrameType::context_begin;

    ContextId context{};
    ContextOrigin origin{};
    Rank rank{};  // the sender's, below size
    std::uint32_t size = 1;

    friend bool operator==(const ContextBegin&, const ContextBegin&) noexcept = default;
};

/// Follows the last message of a communicator that the sender has closed.
struct ContextEnd {
    static constexpr FrameType kType = FrameType::context_end;

    ContextId context{};
    std::uint64_t collectives = 0;  // how many the sender took part in

    friend bool operator==(const ContextEnd&, const ContextEnd&) noexcept = default;
};

struct WorldMember {
    Id node{};

    friend bool operator==(const WorldMember&, const WorldMember&) noexcept = default;
};

/// Tells a process that has joined which communicator is its world.
struct NewWorld {
    static constexpr FrameType kType = FrameType::new_world;

    ContextId context{};
    ContextOrigin origin{};
    std::vector<WorldMember> members{};  // by rank
    std::uint32_t senders = 0;           // ranks 0, 1, ... that send parts of the state to it

    friend bool operator==(const NewWorld&, const NewWorld&) = default;
};

}  // namespace nexar::wire

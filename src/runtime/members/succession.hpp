#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/identity.hpp"
#include "base/types.hpp"
#include "base/view.hpp"
#include "engine/agreement.hpp"
#include "engine/context.hpp"
#include "runtime/members/node_members.hpp"
#include "schedule/choice.hpp"
#include "wire/context_messages.hpp"
#include "wire/membership_messages.hpp"

/// Which communicator takes the place of another one: the part of shrink(), grow() and
/// elastic_checkpoint() that needs no thread. All ranks compute the same from what they agreed on.
namespace nexar::runtime {

/// What the ranks of a communicator agreed on.
struct Outcome {
    std::vector<Rank> lost{};
    Epoch epoch{};
    std::uint64_t creation = 0;
    wire::AgreementWords words{};
    engine::WorldPlan plan{};
    bool resumed = false;  // see engine::AgreeOperation
};

Outcome outcome_of(const engine::AgreeOperation& agreed);

/// True if the node is a member of the communicator; `self` is the node that has it.
bool contains(const engine::Context& context, const NodeId& self, const NodeId& node) noexcept;

/// True if a member of the cluster waits to be taken into a communicator or one made from it.
bool is_newcomer(const engine::Context& context, const NodeId& self, const Member& member) noexcept;

/// Context::newcomers_from of a communicator of these nodes that has taken in newcomers.
Rank newcomers_after(const NodeMembers& members, std::span<const NodeId> nodes) noexcept;

/// The newcomers among the members of a view, ascending.
std::vector<Rank> members_beyond(const View& view, const engine::Context& context,
                                 const NodeId& self);

/// Adds a communicator to an engine. Its id follows from its origin.
engine::Context& add_communicator(engine::Engine& engine, const ClusterId& cluster,
                                  std::span<const NodeId> nodes, std::size_t me,
                                  const wire::ContextOrigin& origin,
                                  const schedule::Profile& profile);

/// The communicator that follows `parent`.
struct Successor {
    std::vector<NodeId> nodes{};      // by rank: those that stay, then those that join
    std::size_t first_joiner = 0;     // nodes from here on have joined
    std::optional<std::size_t> me{};  // nullopt: this node is not in it
    wire::ContextOrigin origin{};

    std::span<const NodeId> joiners() const noexcept {
        return std::span(nodes).subspan(first_joiner);
    }
};

/// The ranks of `parent` that are neither lost nor excluded, then the nodes that join.
Successor successor_of(const engine::Context& parent, const NodeId& self, const Outcome& agreed,
                       std::span<const NodeId> joiners);

/// What is known of nodes that are or were members.
std::vector<Member> members_of(const NodeMembers& members, std::span<const NodeId> nodes);

/// Tells nodes that have joined which communicator is their world.
wire::NewWorld offer_of(const engine::Context& made, std::span<const NodeId> nodes,
                        std::uint32_t senders);

/// The communicator that other members have made for this node. nullopt: it does not contain this
/// node, or its id is not the one that follows from its origin.
std::optional<Successor> accepted(const wire::NewWorld& offered, const Identity& self);

/// True if no member of the view joined the cluster before this node. If the node has no world,
/// nobody is left who could take it in: a member joins a world only through one that is older.
bool is_eldest(const View& view, const NodeId& self) noexcept;

/// When a node is ready to take in members that have joined.
class Readiness {
public:
    /// The epoch of the view, if it has newcomers and `linked` holds for all of them, or this node
    /// has waited for that long enough; else 0.
    template <class Linked>
    std::uint64_t epoch_with_others(TimePoint now, const View& view, const engine::Context& context,
                                    const NodeId& self, const Linked& linked) {
        bool others = false;
        bool all = true;
        for (const Member& member : view.members) {
            if (!is_newcomer(context, self, member)) continue;
            others = true;
            all = all && linked(member.node);
        }
        return others ? ready(now, view.epoch, all) : 0;
    }

private:
    std::uint64_t ready(TimePoint now, Epoch epoch, bool linked) noexcept;

    Epoch epoch_{};
    TimePoint since_{};
};

}  // namespace nexar::runtime

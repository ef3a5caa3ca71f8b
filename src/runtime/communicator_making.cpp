// Creates communicators from others.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nexar/communicator.hpp>
#include <numeric>
#include <utility>

#include "base/mix.hpp"
#include "runtime/context_id.hpp"
#include "runtime/node_access.hpp"

namespace nexar {

namespace {

using Body = std::shared_ptr<detail::CommunicatorBody>;

/// Creates a communicator of the ranks `ranks` of `body`, in this order; `me` is the index of this
/// node among them.
Communicator make(const detail::NodeAccess& access, const Body& body,
                  std::span<const std::uint32_t> ranks, std::size_t me,
                  const wire::ContextOrigin& origin) {
    detail::NodeBody& node = *body->node;
    node.check_not_aborted("making a communicator");
    std::vector<NodeId> members;
    members.reserve(ranks.size());
    for (const std::uint32_t rank : ranks) {
        const engine::Pair* const pair = body->context->pairs[rank];
        members.push_back(pair == nullptr ? node.id() : pair->peer->node);
    }
    engine::Context& made =
        access->add_context(runtime::context_id(node.cluster(), origin), members,
                            Rank(static_cast<std::uint32_t>(me)), origin);
    made.newcomers_from = body->context->newcomers_from;
    schedule::Profile profile = body->context->collectives.profile;
    profile.links = profile.links.among(ranks);
    profile.hops = profile.hops.among(ranks);
    profile.memory.slot_bytes = 0;  // a communicator has its own
    profile.memory.buffer_bytes = 0;
    made.collectives.set_profile(profile);
    node.share_memory(made);
    return Communicator(std::make_shared<detail::CommunicatorBody>(
        body->node, std::make_shared<detail::OwnedContext>(node, made)));
}

/// Every rank calls this for every creation, so that all ranks number creations alike.
wire::ContextOrigin next_origin(engine::Context& parent, std::uint64_t colour) {
    return {.parent = parent.id, .creation = parent.creations++, .colour = colour};
}

/// Returns nullopt if this node is not one of the ranks.
std::optional<Communicator> make_of(const Body& body, std::span<const std::uint32_t> ranks,
                                    std::uint64_t colour) {
    const detail::NodeAccess access(*body->node);
    const wire::ContextOrigin origin = next_origin(*body->context, colour);
    const auto me = std::ranges::find(ranks, body->context->me.value());
    if (me == ranks.end()) return std::nullopt;
    return make(access, body, ranks, static_cast<std::size_t>(me - ranks.begin()), origin);
}

std::vector<std::uint32_t> all_ranks(std::size_t size) {
    std::vector<std::uint32_t> ranks(size);
    std::iota(ranks.begin(), ranks.end(), 0U);
    return ranks;
}

}  // namespace

Communicator Communicator::duplicate() const {
    engine::Context& parent = *body()->context;
    const detail::NodeAccess access(*body()->node);
    return make(access, body(), all_ranks(parent.pairs.size()), parent.me.value(),
                next_origin(parent, 0));
}

std::optional<Communicator> Communicator::split(std::optional<std::uint32_t> colour,
                                                std::int64_t key) const {
    // 0 means undefined: these ranks get no communicator.
    using Choice = std::array<std::int64_t, 2>;
    const Choice own{colour ? static_cast<std::int64_t>(*colour) + 1 : 0, key};
    const std::size_t world = body()->context->pairs.size();
    std::vector<std::int64_t> all(own.size() * world);
    all_gather(own, all).wait();
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        if (own[0] != 0 && all[std::size_t{2} * rank] == own[0]) ranks.push_back(rank);
    }
    std::ranges::sort(ranks, {}, [&](std::uint32_t rank) {
        return std::pair(all[std::size_t{2} * rank + 1], rank);
    });
    return make_of(body(), ranks, static_cast<std::uint64_t>(own[0]));
}

std::optional<Communicator> Communicator::subgroup_of(std::span<const std::int64_t> ranks) const {
    const auto world = static_cast<std::int64_t>(body()->context->pairs.size());
    std::vector<std::uint32_t> members;
    std::vector<bool> named(static_cast<std::size_t>(world));
    // Different lists give different communicators, so ranks that disagree never share one.
    std::uint64_t colour = ranks.size();
    for (const std::int64_t rank : ranks) {
        if (rank < 0 || rank >= world || named[static_cast<std::size_t>(rank)]) {
            throw Error(
                Errc::invalid_argument,
                fmt::format("rank {} is not valid in a subgroup: ranks go from 0 to {}, each "
                            "once",
                            rank, world - 1),
                {.operation = "subgroup"});
        }
        named[static_cast<std::size_t>(rank)] = true;
        members.push_back(static_cast<std::uint32_t>(rank));
        colour = mixed(colour ^ members.back());
    }
    return make_of(body(), members, colour);
}

}  // namespace nexar

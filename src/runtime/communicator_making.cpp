// Communicators that are made from others.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nexar/communicator.hpp>
#include <numeric>
#include <utility>

#include "base/mix.hpp"
#include "runtime/context_id.hpp"
#include "runtime/node_body.hpp"

namespace nexar {

namespace {

using Body = std::shared_ptr<detail::CommunicatorBody>;

/// Of the ranks `ranks` of a communicator, in this order; nothing when this node is none of them.
/// Counts as a creation in any case, so that all ranks count alike.
std::optional<Communicator> make(const Body& body, std::span<const std::uint32_t> ranks,
                                 std::uint64_t colour) {
    detail::NodeBody& node = *body->node;
    const runtime::Progress::Guard guard(node.progress());
    engine::Context& parent = *body->context;
    const wire::ContextOrigin origin{
        .parent = parent.id, .creation = parent.creations++, .colour = colour};
    const auto me = std::ranges::find(ranks, parent.me.value());
    if (me == ranks.end()) return std::nullopt;
    std::vector<NodeId> members;
    members.reserve(ranks.size());
    for (const std::uint32_t rank : ranks) {
        const engine::Pair* const pair = parent.pairs[rank];
        members.push_back(pair == nullptr ? node.id() : pair->peer->node);
    }
    engine::Context& made =
        node.engine().add_context(runtime::context_id(node.cluster(), origin), members,
                                  Rank(static_cast<std::uint32_t>(me - ranks.begin())), origin);
    node.settle(node.now());
    return Communicator(std::make_shared<detail::CommunicatorBody>(body->node, made, true));
}

std::vector<std::uint32_t> all_ranks(std::size_t size) {
    std::vector<std::uint32_t> ranks(size);
    std::iota(ranks.begin(), ranks.end(), 0U);
    return ranks;
}

}  // namespace

Communicator Communicator::duplicate() {
    // This rank is one of all.
    return make(body(), all_ranks(body()->context->pairs.size()), 0).value();
}

std::optional<Communicator> Communicator::split(std::optional<std::uint32_t> colour,
                                                std::int64_t key) {
    // 0 is no colour: of those who have none nothing is made.
    using Choice = std::array<std::int64_t, 2>;
    const Choice own{colour ? static_cast<std::int64_t>(*colour) + 1 : 0, key};
    const std::size_t world = body()->context->pairs.size();
    std::vector<std::int64_t> all(own.size() * world);
    all_gather(std::span(own), std::span(all)).wait();
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        if (own[0] != 0 && all[std::size_t{2} * rank] == own[0]) ranks.push_back(rank);
    }
    std::ranges::sort(ranks, {}, [&](std::uint32_t rank) {
        return std::pair(all[std::size_t{2} * rank + 1], rank);
    });
    return make(body(), ranks, static_cast<std::uint64_t>(own[0]));
}

std::optional<Communicator> Communicator::subgroup(std::span<const int> ranks) {
    const auto world = static_cast<std::int64_t>(body()->context->pairs.size());
    std::vector<std::uint32_t> members;
    std::vector<bool> named(static_cast<std::size_t>(world));
    // Other lists give other communicators: ranks that disagree never talk in one.
    std::uint64_t colour = ranks.size();
    for (const int rank : ranks) {
        if (rank < 0 || rank >= world || named[static_cast<std::size_t>(rank)]) {
            throw Error(Errc::invalid_argument,
                        fmt::format("rank {} cannot be in a subgroup: ranks go from 0 to {}, each "
                                    "once",
                                    rank, world - 1),
                        {.operation = "subgroup"});
        }
        named[static_cast<std::size_t>(rank)] = true;
        members.push_back(static_cast<std::uint32_t>(rank));
        colour = mixed(colour ^ members.back());
    }
    return make(body(), members, colour);
}

}  // namespace nexar

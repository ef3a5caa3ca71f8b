#include "topologies/flows.hpp"

#include <algorithm>

#include "schedule/hops.hpp"

namespace nexar {

namespace {

using schedule::Kind;
using schedule::Peers;

constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 20U;

/// True if all members send the same amounts, to members at the same distances in the order of the
/// ring.
bool symmetric(const schedule::Algorithm& algorithm) {
    switch (algorithm.operation) {
        case schedule::Collective::all_reduce:
        case schedule::Collective::reduce_scatter:
        case schedule::Collective::all_gather:
        case schedule::Collective::all_to_all:
            return algorithm.peers == Peers::next || algorithm.peers == Peers::shifted;
        default:
            return false;
    }
}

/// Adds what a member sends, one flow for each peer. A message without elements counts as a byte.
void add_sent(const schedule::Schedule& schedule, std::uint32_t rank, std::uint32_t element_bytes,
              std::vector<Flow>& flows) {
    const auto first = static_cast<std::ptrdiff_t>(flows.size());
    for (const schedule::Step& step : schedule.steps) {
        if (step.kind != Kind::send) continue;
        const std::uint64_t bytes = std::max<std::uint64_t>(step.count() * element_bytes, 1);
        const auto known = std::find_if(flows.begin() + first, flows.end(),
                                        [&](const Flow& flow) { return flow.to == step.peer; });
        if (known == flows.end())
            flows.push_back({.from = rank, .to = step.peer, .bytes = static_cast<double>(bytes)});
        else
            known->bytes += static_cast<double>(bytes);
    }
}

/// What all members send if they send the same as the one at position 0.
CollectiveFlows repeated(const std::vector<Flow>& first, const schedule::RankOrder& order,
                         std::uint32_t world) {
    CollectiveFlows all;
    for (std::uint32_t position = 0; position < world; ++position) {
        for (const Flow& flow : first) {
            const std::uint32_t to = schedule::around(position, order.position_of(flow.to), world);
            all.flows.push_back(
                {.from = order.rank_at(position), .to = order.rank_at(to), .bytes = flow.bytes});
        }
    }
    return all;
}

}  // namespace

std::optional<CollectiveFlows> flows_of(const schedule::Choice& choice,
                                        const schedule::Workload& workload,
                                        const schedule::Hops& hops) {
    const schedule::Algorithm& algorithm = *choice.algorithm;
    if (algorithm.peers == Peers::all) return CollectiveFlows{.uniform = true};
    schedule::Request request;
    request.operation = workload.operation;
    request.world = workload.world;
    request.segment = choice.segment;
    request.chunks = schedule::Chunks::even(workload.count, workload.world);
    request.receives = request.chunks;
    follow(request, hops, algorithm);
    const auto order = algorithm.peers == Peers::next ? hops.order() : schedule::RankOrder();
    CollectiveFlows all;
    std::uint64_t steps = 0;
    for (std::uint32_t position = 0; position < request.world; ++position) {
        request.rank = order.rank_at(position);
        const schedule::Schedule schedule = algorithm.build(request);
        add_sent(schedule, request.rank, workload.element_bytes, all.flows);
        steps += schedule.steps.size();
        if (steps * request.world > kMostCounted && position == 0 && symmetric(algorithm)) {
            return repeated(all.flows, order, request.world);
        }
        if (steps > kMostCounted) return std::nullopt;
    }
    return all;
}

}  // namespace nexar

#include "topologies/compare.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/try.hpp"
#include "routing/graph.hpp"
#include "runtime/topology_hops.hpp"
#include "topologies/flows.hpp"
#include "topologies/relay_load.hpp"

namespace nexar {

namespace {

constexpr std::uint32_t kElementBytes = 4;

schedule::Workload workload_of(schedule::Collective operation, std::uint64_t bytes,
                               std::uint32_t members) {
    std::uint64_t count = operation == schedule::Collective::barrier ? 0 : bytes / kElementBytes;
    // All pairs exchange the same amount.
    if (operation == schedule::Collective::all_to_all) count -= count % members;
    return {.operation = operation,
            .world = members,
            .count = count,
            .largest = schedule::Chunks::even(count, members).largest(),
            .element_bytes = kElementBytes};
}

/// The flows of all collectives. The load does not depend much on the size, so each algorithm is
/// counted once.
class CountedFlows {
public:
    static constexpr std::size_t kUniform = static_cast<std::size_t>(-1);

    /// The index among the flows, kUniform, or nullopt: not counted.
    std::optional<std::size_t> of(const schedule::Choice& choice,
                                  const schedule::Workload& workload, const schedule::Hops& hops) {
        const auto known = places_.find(choice.algorithm);
        if (known != places_.end()) return known->second;
        std::optional<std::size_t> place;
        if (auto counted = flows_of(choice, workload, hops)) {
            place = counted->uniform ? kUniform : flows_.size();
            if (!counted->uniform) flows_.push_back(std::move(counted->flows));
        }
        return places_[choice.algorithm] = place;
    }
    const std::vector<std::vector<Flow>>& all() const noexcept { return flows_; }

private:
    std::vector<std::vector<Flow>> flows_{};
    std::map<const schedule::Algorithm*, std::optional<std::size_t>> places_{};
};

std::uint64_t most_degree(const routing::Graph& graph) {
    std::size_t most = 0;
    for (routing::Position member = 0; member < graph.size(); ++member) {
        most = std::max(most, graph.degree(member));
    }
    return most;
}

/// Every size of every operation; a barrier has one.
std::vector<CollectiveForecast> cells_of(const TopologyQuestion& question) {
    std::vector<CollectiveForecast> cells;
    for (const schedule::Collective operation : question.operations) {
        if (operation == schedule::Collective::barrier) {
            cells.push_back({.operation = operation});
            continue;
        }
        for (const std::uint64_t bytes : question.sizes) {
            cells.push_back({.operation = operation, .bytes = bytes});
        }
    }
    return cells;
}

}  // namespace

Result<TopologyForecast> forecast(const TopologyQuestion& question,
                                  const routing::Topology& topology, std::uint32_t members) {
    std::vector<Rank> ranks;
    ranks.reserve(members);
    for (std::uint32_t rank = 0; rank < members; ++rank) ranks.emplace_back(rank);
    const routing::Graph graph(topology, ranks);
    schedule::Profile profile = question.profile;
    profile.links = schedule::Links();
    profile.hops = runtime::hops_of(topology, graph);
    TopologyForecast made{.topology = topology,
                          .members = members,
                          .connections = graph.edges(),
                          .most_connections = most_degree(graph),
                          .collectives = cells_of(question)};
    CountedFlows counted;
    // The cells whose load is counted, and where to find it.
    std::vector<std::pair<CollectiveForecast*, std::size_t>> places;
    for (CollectiveForecast& cell : made.collectives) {
        const schedule::Workload workload = workload_of(cell.operation, cell.bytes, members);
        if (workload.count == 0 && cell.operation != schedule::Collective::barrier) continue;
        NEXAR_TRY_VALUE(choice, schedule::choose(workload, profile));
        cell.algorithm = choice.algorithm->name;
        cell.seconds = choice.seconds;
        const std::optional<std::size_t> place =
            graph.complete() ? CountedFlows::kUniform : counted.of(choice, workload, profile.hops);
        if (place) places.emplace_back(&cell, *place);
    }
    const GraphSurvey found = survey(graph, counted.all());
    made.diameter = found.diameter;
    made.mean_hops = found.mean_hops;
    made.uniform_load = found.uniform_load;
    for (const auto& [cell, place] : places) {
        cell->relay_load =
            place == CountedFlows::kUniform ? found.uniform_load : found.loads[place];
    }
    return made;
}

Result<std::vector<TopologyForecast>> forecasts(const TopologyQuestion& question) {
    std::vector<TopologyForecast> all;
    for (const std::uint32_t members : question.worlds) {
        for (const routing::Topology& topology : question.topologies) {
            NEXAR_TRY_VALUE(one, forecast(question, topology, members));
            all.push_back(std::move(one));
        }
    }
    return all;
}

}  // namespace nexar

#include "topologies/relay_load.hpp"

#include <algorithm>
#include <utility>

#include "base/mix.hpp"

namespace nexar {

namespace {

using routing::Position;

/// The order in which routing::Routes prefers neighbours that are equally near to the target.
class Ties {
public:
    Ties(const routing::Graph& graph, Position me, Position target)
        : graph_(graph),
          pair_(
              mixed((std::uint64_t{graph.rank(me).value()} << 32U) | graph.rank(target).value())) {}

    std::uint64_t of(Position next) const { return mixed(pair_ ^ graph_.rank(next).value()); }

private:
    const routing::Graph& graph_;
    std::uint64_t pair_;
};

class Surveyor {
public:
    Surveyor(const routing::Graph& graph, std::span<const std::vector<Flow>> flows)
        : graph_(graph),
          next_(graph.size()),
          passing_(graph.size()),
          uniform_(graph.size()),
          flows_(flows.begin(), flows.end()),
          forwarded_(flows.size(), std::vector<double>(graph.size())),
          sent_(flows.size()) {
        for (auto& one : flows_) {
            std::ranges::sort(one, {},
                              [](const Flow& flow) { return std::pair(flow.to, flow.from); });
        }
    }

    void follow(Position target);
    GraphSurvey result() const;

private:
    void find_ways(Position target);
    void forward(std::vector<double>& forwarded);
    double load(const std::vector<double>& forwarded, double sent) const;

    const routing::Graph& graph_;
    routing::Reach reach_{};       // from the target
    std::vector<Position> next_;   // of every member, towards the target
    std::vector<double> passing_;  // bytes at every member for the target
    std::vector<double> uniform_;  // bytes that every member forwards
    std::vector<std::vector<Flow>> flows_;
    std::vector<std::vector<double>> forwarded_;  // the same as uniform_, for each of the flows
    std::vector<double> sent_;                    // bytes in each of the flows
    std::uint32_t diameter_ = 0;
    double hops_ = 0;
};

void Surveyor::find_ways(Position target) {
    reach_ = routing::search(graph_, target);
    const auto& hops = reach_.hops;
    for (const Position member : reach_.discovered) {
        diameter_ = std::max(diameter_, hops[member]);
        hops_ += hops[member];
        next_[member] = target;
        if (hops[member] < 2) continue;
        const Ties ties(graph_, member, target);
        std::uint64_t least = 0;
        bool found = false;
        const auto offer = [&](Position other) {
            if (hops[other] + 1 != hops[member]) return;
            const std::uint64_t tie = ties.of(other);
            if (found && (tie > least || (tie == least && other > next_[member]))) return;
            found = true;
            least = tie;
            next_[member] = other;
        };
        std::ranges::for_each(graph_.row(member), offer);
        std::ranges::for_each(graph_.group(graph_.group_of(member)), offer);
    }
}

/// Moves what passes at every member to the target, the farthest members first.
void Surveyor::forward(std::vector<double>& forwarded) {
    for (std::size_t i = reach_.discovered.size() - 1; i > 0; --i) {
        const Position member = reach_.discovered[i];
        const Position next = next_[member];
        if (reach_.hops[member] < 2 || passing_[member] == 0) continue;
        forwarded[next] += passing_[member];
        passing_[next] += passing_[member];
    }
}

void Surveyor::follow(Position target) {
    find_ways(target);
    std::ranges::fill(passing_, 1.0);
    forward(uniform_);
    for (std::size_t i = 0; i < flows_.size(); ++i) {
        const auto here = std::ranges::equal_range(flows_[i], target, {}, &Flow::to);
        if (here.empty()) continue;
        std::ranges::fill(passing_, 0.0);
        for (const Flow& flow : here) {
            passing_[flow.from] += flow.bytes;
            sent_[i] += flow.bytes;
        }
        forward(forwarded_[i]);
    }
}

double Surveyor::load(const std::vector<double>& forwarded, double sent) const {
    if (sent == 0) return 0;
    return *std::ranges::max_element(forwarded) / (sent / graph_.size());
}

GraphSurvey Surveyor::result() const {
    const double ways = static_cast<double>(graph_.size()) * (graph_.size() - 1);
    GraphSurvey found{
        .diameter = diameter_, .mean_hops = hops_ / ways, .uniform_load = load(uniform_, ways)};
    for (std::size_t i = 0; i < flows_.size(); ++i) {
        found.loads.push_back(load(forwarded_[i], sent_[i]));
    }
    return found;
}

}  // namespace

GraphSurvey survey(const routing::Graph& graph, std::span<const std::vector<Flow>> flows) {
    if (graph.complete()) {
        return {.diameter = 1, .mean_hops = 1, .loads = std::vector<double>(flows.size())};
    }
    Surveyor surveyor(graph, flows);
    for (Position target = 0; target < graph.size(); ++target) surveyor.follow(target);
    return surveyor.result();
}

}  // namespace nexar

#include "schedule/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "schedule/message_ends.hpp"
#include "schedule/timing_state.hpp"

namespace nexar::schedule {

namespace {

using timing::Dependent;
using timing::Happening;
using timing::Moment;
using timing::Network;
using timing::PieceId;
using timing::PieceState;
using timing::serve;
using timing::Servers;
using timing::StepId;
using timing::StepState;

class TimedRun {
public:
    TimedRun(std::span<const Schedule> ranks, std::uint64_t element_bytes, const Fabric& fabric)
        : ranks_(ranks), bytes_(static_cast<double>(element_bytes)), fabric_(fabric) {}

    Result<void> prepare(std::uint64_t max_pieces);
    Result<double> run();
    /// The bytes that a rank sent on for others, at most.
    double most_relayed() const {
        return std::ranges::max_element(servers_, {}, &Servers::relayed)->relayed;
    }

private:
    std::uint64_t pieces_in_all() const;
    void add_steps();
    Result<void> match();
    void connect();
    void start();
    double bytes_of(const StepState& step, PieceId piece) const;
    bool far(const StepState& step) const {
        return fabric_.links.between(step.rank, step.step->peer) == LinkKind::fabric;
    }
    const Rates& rates_of(const StepState& step) const {
        return far(step) ? fabric_.rates : fabric_.host_rates;
    }
    Network& network_of(std::uint32_t rank) { return networks_[fabric_.links.host(rank)]; }
    std::uint32_t next_hop(std::uint32_t at, std::uint32_t to) const {
        return fabric_.next_hop ? fabric_.next_hop(at, to) : to;
    }
    void push(double at, Moment moment, StepId step, PieceId piece, std::uint32_t relay = 0);
    void on_ready(double now, StepId id, PieceId piece);
    void leave(double now, StepId id, PieceId piece);
    void send_to(std::uint32_t hop, double left, StepId id, PieceId piece);
    void pass(double now, StepId id, PieceId piece, std::uint32_t relay);
    void arrive(double now, StepId id, PieceId piece);
    void take_in(double now, StepId id, PieceId piece);
    void tell(double now, StepId id, PieceId piece, Milestone event);
    void satisfy(double now, StepId id, PieceId piece);

    std::span<const Schedule> ranks_;
    double bytes_;  // of an element
    const Fabric& fabric_;
    std::vector<StepId> first_step_;  // of each rank
    std::vector<StepState> steps_;
    std::vector<PieceState> pieces_;
    std::vector<Dependent> dependents_;
    std::vector<Servers> servers_;
    std::vector<Network> networks_;  // by host
    std::priority_queue<Happening, std::vector<Happening>, std::greater<>> queue_;
    std::uint64_t happenings_ = 0;
    std::uint64_t unfinished_ = 0;
};

std::uint64_t TimedRun::pieces_in_all() const {
    std::uint64_t all = 0;
    for (const Schedule& schedule : ranks_)
        for (const Step& step : schedule.steps) all += step.segments();
    return all;
}

Result<void> TimedRun::prepare(std::uint64_t max_pieces) {
    const std::uint64_t all = pieces_in_all();
    if (all > max_pieces) {
        return Error(
            Errc::limit_exceeded,
            fmt::format("the schedules have {} pieces, but at most {} can be simulated; choose a "
                        "smaller world, larger segments or an algorithm with fewer steps",
                        all, max_pieces));
    }
    pieces_.resize(static_cast<std::size_t>(all));
    servers_.resize(ranks_.size());
    networks_.resize(ranks_.size());
    add_steps();
    if (auto matched = match(); !matched) return matched;
    connect();
    start();
    return {};
}

void TimedRun::add_steps() {
    PieceId pieces = 0;
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        first_step_.push_back(static_cast<StepId>(steps_.size()));
        for (const Step& step : ranks_[rank].steps) {
            const auto count = static_cast<std::uint32_t>(step.segments());
            steps_.push_back({.step = &step, .rank = rank, .first_piece = pieces, .pieces = count});
            pieces += count;
        }
    }
    unfinished_ = pieces;
}

Result<void> TimedRun::match() {
    const auto alone = [](std::uint32_t rank, const Step& step) {
        const bool in = receives(step.kind);
        return Error(
            Errc::invalid_argument,
            fmt::format("message {} from rank {} to rank {} has no matching {}", step.message,
                        in ? step.peer : rank, in ? rank : step.peer, in ? "send" : "receive"));
    };
    const MessageEnds ends = match_messages(ranks_);
    if (const auto& place = ends.unmatched)
        return alone(place->rank, ranks_[place->rank].steps[place->step]);
    for (StepId id = 0; id < steps_.size(); ++id) {
        StepState& state = steps_[id];
        if (!is_message(state.step->kind)) continue;
        const std::uint32_t other = ends.other[state.rank][id - first_step_[state.rank]];
        state.partner = first_step_[state.step->peer] + other;
        if (steps_[state.partner].pieces != state.pieces) return alone(state.rank, *state.step);
    }
    return {};
}

void TimedRun::connect() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        for (const Dependency& dependency : ranks_[rank].dependencies)
            ++steps_[first_step_[rank] + dependency.step].dependents;
    }
    std::uint32_t next = 0;
    for (StepState& step : steps_) {
        step.first_dependent = next;
        next += std::exchange(step.dependents, 0);
    }
    dependents_.resize(next);
    for (StepId id = 0; id < steps_.size(); ++id) {
        const StepState& step = steps_[id];
        const StepId base = first_step_[step.rank];
        for (const Dependency& dependency : ranks_[step.rank].dependencies_of(id - base)) {
            StepState& other = steps_[base + dependency.step];
            dependents_[other.first_dependent + other.dependents++] = {id, dependency.event,
                                                                       dependency.pipelined};
        }
    }
}

/// The first piece waits for whole steps; each piece waits for its pipelined counterparts, and for
/// the previous piece to start.
void TimedRun::start() {
    for (StepId id = 0; id < steps_.size(); ++id) {
        const StepState& step = steps_[id];
        const auto dependencies = ranks_[step.rank].dependencies_of(id - first_step_[step.rank]);
        const auto pipelined = static_cast<std::uint32_t>(
            std::ranges::count(dependencies, true, &Dependency::pipelined));
        const auto whole = static_cast<std::uint32_t>(dependencies.size()) - pipelined;
        for (std::uint32_t k = 0; k < step.pieces; ++k)
            pieces_[step.first_piece + k].waits_for = pipelined + (k == 0 ? whole : 1);
        if (pieces_[step.first_piece].waits_for == 0) push(0, Moment::ready, id, 0);
    }
}

double TimedRun::bytes_of(const StepState& step, PieceId piece) const {
    const std::uint64_t segment = step.pieces == 1 ? step.step->count() : step.step->segment;
    const std::uint64_t begin = segment * piece;
    return static_cast<double>(std::min(segment, step.step->count() - begin)) * bytes_;
}

void TimedRun::push(double at, Moment moment, StepId step, PieceId piece, std::uint32_t relay) {
    queue_.push({at, happenings_++, moment, step, piece, relay});
}

void TimedRun::satisfy(double now, StepId id, PieceId piece) {
    if (--pieces_[steps_[id].first_piece + piece].waits_for == 0)
        push(now, Moment::ready, id, piece);
}

void TimedRun::tell(double now, StepId id, PieceId piece, Milestone event) {
    StepState& step = steps_[id];
    std::uint32_t& done = event == Milestone::finished ? step.finished : step.released;
    const bool whole = ++done == step.pieces;
    for (std::uint32_t i = 0; i < step.dependents; ++i) {
        const Dependent& dependent = dependents_[step.first_dependent + i];
        if (dependent.event != event) continue;
        if (dependent.pipelined)
            satisfy(now, dependent.step, piece);
        else if (whole)
            satisfy(now, dependent.step, 0);
    }
}

void TimedRun::on_ready(double now, StepId id, PieceId piece) {
    const StepState& step = steps_[id];
    PieceState& state = pieces_[step.first_piece + piece];
    state.ready = true;
    if (piece + 1 < step.pieces) satisfy(now, id, piece + 1);
    if (step.step->kind == Kind::send) {
        leave(now, id, piece);
    } else if (step.step->kind == Kind::copy || step.step->kind == Kind::reduce) {
        const Rates& rates = fabric_.rates;
        const double byte = step.step->kind == Kind::copy ? rates.copy_byte : rates.reduce_byte;
        const double end = serve(servers_[step.rank].processor, now, bytes_of(step, piece) * byte);
        push(end, Moment::finished, id, piece);
    } else if (state.came) {
        take_in(now, id, piece);
    }
}

void TimedRun::leave(double now, StepId id, PieceId piece) {
    const StepState& step = steps_[id];
    const Rates& rates = rates_of(step);
    const double bytes = bytes_of(step, piece);
    Servers& servers = servers_[step.rank];
    const double busy = servers.in > now ? rates.occupies_both(bytes) : rates.occupies(bytes);
    const double left = serve(servers.out, now, busy) - busy;
    send_to(next_hop(step.rank, step.step->peer), left, id, piece);
    if (!far(step)) return;
    const double sent = serve(network_of(step.rank).out, left, bytes * rates.shared_byte);
    double& through = pieces_[steps_[step.partner].first_piece + piece].through;
    through = std::max(through, sent + rates.latency);
}

/// The message leaves a rank for the next one on its way.
void TimedRun::send_to(std::uint32_t hop, double left, StepId id, PieceId piece) {
    const StepState& step = steps_[id];
    const Rates& rates = rates_of(step);
    if (hop == step.step->peer) {
        push(left + rates.arrival(bytes_of(step, piece)), Moment::arrives, step.partner, piece);
    } else {
        push(left + rates.latency, Moment::passes, id, piece, hop);
    }
}

void TimedRun::pass(double now, StepId id, PieceId piece, std::uint32_t relay) {
    const StepState& step = steps_[id];
    const Rates& rates = rates_of(step);
    const double bytes = bytes_of(step, piece);
    const double busy = rates.occupies_both(bytes);
    Servers& servers = servers_[relay];
    servers.relayed += bytes;
    const double came = serve(servers.in, now, busy) - busy + rates.per_message;
    const double left = serve(servers.out, came, busy) - busy;
    double& through = pieces_[steps_[step.partner].first_piece + piece].through;
    through = std::max(through, left + busy + rates.latency);
    send_to(next_hop(relay, step.step->peer), left, id, piece);
}

void TimedRun::arrive(double now, StepId id, PieceId piece) {
    const StepState& step = steps_[id];
    const Rates& rates = rates_of(step);
    const double bytes = bytes_of(step, piece);
    Servers& servers = servers_[step.rank];
    const double busy = servers.out > now ? rates.occupies_both(bytes) : rates.occupies(bytes);
    double end = std::max(serve(servers.in, now, busy), pieces_[step.first_piece + piece].through);
    if (far(step)) {
        const double received = serve(network_of(step.rank).in, now, bytes * rates.shared_byte);
        end = std::max(end, received);
    }
    push(end, Moment::came, id, piece);
}

void TimedRun::take_in(double now, StepId id, PieceId piece) {
    const StepState& step = steps_[id];
    double end = now;
    if (step.step->kind == Kind::receive_reduce) {
        const double time = bytes_of(step, piece) * fabric_.rates.reduce_byte;
        end = serve(servers_[step.rank].processor, now, time);
    }
    push(end, Moment::finished, id, piece);
}

Result<double> TimedRun::run() {
    double last = 0;
    while (!queue_.empty()) {
        const Happening next = queue_.top();
        queue_.pop();
        const StepState& step = steps_[next.step];
        PieceState& piece = pieces_[step.first_piece + next.piece];
        switch (next.moment) {
            case Moment::ready:
                on_ready(next.at, next.step, next.piece);
                break;
            case Moment::passes:
                pass(next.at, next.step, next.piece, next.relay);
                break;
            case Moment::arrives:
                arrive(next.at, next.step, next.piece);
                break;
            case Moment::came:
                piece.came = true;
                push(next.at, Moment::finished, step.partner, next.piece);
                push(next.at + rates_of(step).latency, Moment::released, step.partner, next.piece);
                if (piece.ready) take_in(next.at, next.step, next.piece);
                break;
            case Moment::finished:
                --unfinished_;
                last = std::max(last, next.at);
                tell(next.at, next.step, next.piece, Milestone::finished);
                break;
            case Moment::released:
                tell(next.at, next.step, next.piece, Milestone::released);
                break;
        }
    }
    if (unfinished_ == 0) return last;
    return Error(Errc::invalid_argument,
                 fmt::format("deadlock: {} pieces never finish because they wait for each other",
                             unfinished_));
}

}  // namespace

Result<Timing> run_on_clock(std::span<const Schedule> ranks, std::uint64_t element_bytes,
                            const Fabric& fabric, std::uint64_t max_pieces) {
    TimedRun run(ranks, element_bytes, fabric);
    if (const auto prepared = run.prepare(max_pieces); !prepared) return prepared.error();
    const auto seconds = run.run();
    if (!seconds) return seconds.error();
    Timing timing{.seconds = *seconds,
                  .most_relayed = static_cast<std::uint64_t>(run.most_relayed())};
    for (const Schedule& schedule : ranks) {
        std::uint64_t bytes = 0;
        std::uint64_t messages = 0;
        std::vector<std::uint32_t> peers;
        for (const Step& step : schedule.steps) {
            if (!is_message(step.kind)) continue;
            peers.push_back(step.peer);
            if (step.kind != Kind::send) continue;
            bytes += step.count() * element_bytes;
            ++messages;
        }
        std::ranges::sort(peers);
        const auto repeated = std::ranges::unique(peers);
        const auto distinct = peers.size() - repeated.size();
        timing.bytes_sent += bytes;
        timing.most_bytes_sent = std::max(timing.most_bytes_sent, bytes);
        timing.most_messages = std::max(timing.most_messages, messages);
        timing.most_connections =
            std::max(timing.most_connections, static_cast<std::uint32_t>(distinct));
    }
    return timing;
}

}  // namespace nexar::schedule

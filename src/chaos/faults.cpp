// What the faults of a plan do to the cluster.

#include <fmt/format.h>

#include <algorithm>

#include "chaos/simulation.hpp"

namespace nexar::chaos {

void Simulation::apply(const Fault& fault) {
    if (calm_ || rules_.failed()) return;
    say("fault " + text_of(fault));
    switch (fault.kind) {
        case FaultKind::kill:
            return kill(fault, false);
        case FaultKind::power_off:
            return kill(fault, true);
        case FaultKind::pause:
            return pause(fault);
        case FaultKind::slow:
            return slow(fault);
        case FaultKind::cut:
            return cut({{fault.a, fault.b}}, fault.lasts);
        case FaultKind::cut_pair:
            return cut({{fault.a, fault.b}, {fault.b, fault.a}}, fault.lasts);
        case FaultKind::isolate:
            return isolate(fault);
        case FaultKind::halve:
            return halve(fault);
        case FaultKind::storm:
            return storm(fault);
        case FaultKind::kill_seed:
            return kill_seed(fault);
        case FaultKind::join:
            ++applied_;
            return start(fault.a);
        case FaultKind::leave:
            return leave(fault);
        case FaultKind::quit:
            return quit(fault);
        case FaultKind::count:
            return;
    }
}

Workload* Simulation::program_on(std::size_t machine) const {
    const auto& process = processes_[machine];
    return process && !process->program->over() ? process->program.get() : nullptr;
}

/// True if the seed or two members besides that of `machine` know the newest view. A single member
/// cannot tell the others of it: docs/membership.md has this among the limits.
bool Simulation::is_known_without(std::size_t machine) const {
    const Epoch last = rules_.last()->epoch;
    if (seed_) {
        const auto& view = seed_->server().view();
        if (view && view->epoch == last) return true;
    }
    std::size_t members = 0;
    for (std::size_t i = 1; i < processes_.size(); ++i) {
        const Workload* const program = i == machine ? nullptr : program_on(i);
        if (program == nullptr || !processes_[i]->node->members().begun()) continue;
        if (processes_[i]->node->members().view().epoch == last) ++members;
    }
    return members >= 2;
}

/// False if a majority of the voters of a view would be lost for ever, or the knowledge of it. A
/// process that has no view yet may be in one that was just decided, so it stays.
bool Simulation::may_lose(std::size_t machine) const {
    const auto lives = [&](const View& view) {
        return running_voters(view, machine) >= view.majority();
    };
    const Workload* const program = program_on(machine);
    if (program == nullptr || program->world() == nullptr) return false;
    if (!lives(*rules_.last()) || !is_known_without(machine)) return false;
    return std::ranges::all_of(processes_, [&](const auto& one) {
        return !one || !one->node->members().begun() || one->program->evicted() ||
               lives(one->node->members().view());
    });
}

void Simulation::kill(const Fault& fault, bool silently) {
    if (!may_lose(fault.a)) return;
    ++applied_;
    end(fault.a, silently);
    if (fault.lasts != Duration::zero()) start_at_[fault.a] = world_.now() + fault.lasts;
}

void Simulation::pause(const Fault& fault) {
    if (program_on(fault.a) == nullptr) return;
    ++applied_;
    Node* const node = processes_[fault.a]->node.get();
    conditions_.change(world_.now(), [&] { ++conditions_.machine(fault.a).pauses; });
    world_.pause(*node, world_.now() + fault.lasts);
    later(fault.lasts, [this, node, machine = fault.a] {
        // Its process may be another one already.
        if (!processes_[machine] || processes_[machine]->node.get() != node) return;
        conditions_.change(world_.now(), [&] {
            int& pauses = conditions_.machine(machine).pauses;
            pauses = std::max(pauses - 1, 0);
        });
    });
}

void Simulation::slow(const Fault& fault) {
    if (program_on(fault.a) == nullptr) return;
    ++applied_;
    Node* const node = processes_[fault.a]->node.get();
    conditions_.change(world_.now(), [&] { ++conditions_.machine(fault.a).slow; });
    world_.set_turn_cost(*node, fault.turn);
    later(fault.lasts, [this, node, machine = fault.a] {
        if (!processes_[machine] || processes_[machine]->node.get() != node) return;
        conditions_.change(world_.now(), [&] {
            int& slow = conditions_.machine(machine).slow;
            slow = std::max(slow - 1, 0);
            if (slow == 0) world_.set_turn_cost(*node, Duration::zero());
        });
    });
}

void Simulation::cut(const std::vector<std::pair<std::size_t, std::size_t>>& paths,
                     Duration lasts) {
    ++applied_;
    const auto set = [this, paths](bool is_cut) {
        conditions_.change(world_.now(), [&] {
            for (const auto& [from, to] : paths) conditions_.cut(from, to, is_cut);
        });
    };
    set(true);
    later(lasts, [set] { set(false); });
}

void Simulation::isolate(const Fault& fault) {
    std::vector<std::pair<std::size_t, std::size_t>> paths;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        if (i == fault.a) continue;
        paths.emplace_back(fault.a, i);
        paths.emplace_back(i, fault.a);
    }
    cut(paths, fault.lasts);
}

void Simulation::halve(const Fault& fault) {
    const auto here = [&](std::size_t machine) { return (fault.side >> machine & 1U) != 0; };
    std::vector<std::pair<std::size_t, std::size_t>> paths;
    std::set<std::size_t> side;
    for (std::size_t a = 0; a < processes_.size(); ++a) {
        if (here(a)) side.insert(a);
        for (std::size_t b = 0; b < processes_.size(); ++b) {
            if (here(a) != here(b)) paths.emplace_back(a, b);
        }
    }
    cut(paths, fault.lasts);
    rules_.partition(std::move(side));
    later(fault.lasts, [this] { rules_.partition_ends(); });
}

void Simulation::storm(const Fault& fault) {
    ++applied_;
    net_.weather = fault.weather;
    conditions_.change(world_.now(), [&] { conditions_.storm(true); });
    later(fault.lasts, [this] {
        conditions_.change(world_.now(), [&] { conditions_.storm(false); });
        if (!conditions_.is_storm()) net_.weather = plan_.weather;
    });
}

void Simulation::kill_seed(const Fault& fault) {
    if (!seed_) return;
    ++applied_;
    conditions_.change(world_.now(), [&] { conditions_.machine(0).running = false; });
    seed_.reset();
    later(fault.lasts, [this] { revive_seed(); });
}

void Simulation::revive_seed() {
    if (seed_) return;
    say("the seed starts again");
    start_seed();
}

void Simulation::leave(const Fault& fault) {
    Workload* const program = program_on(fault.a);
    if (program == nullptr || !may_lose(fault.a)) return;
    ++applied_;
    program->leave();
}

void Simulation::quit(const Fault& fault) {
    Workload* const program = program_on(fault.a);
    if (program == nullptr || !may_lose(fault.a)) return;
    ++applied_;
    rules_.leaves(processes_[fault.a]->node->self().node);
    conditions_.disturb(world_.now());
    program->leave();
    program->quit();
}

}  // namespace nexar::chaos

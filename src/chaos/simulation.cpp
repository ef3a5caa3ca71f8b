#include "chaos/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/settings.hpp"

namespace nexar::chaos {

namespace {

using namespace std::chrono_literals;

constexpr Duration kTick = 100ms;
/// The cluster must be whole this long after the last fault.
constexpr Duration kCalmTime = 60s;

Config settings(const std::string& topology) {
    std::vector<NamedValue> values{{"link", "quic"}, {"topology", topology}};
    return Config::resolve(kSettings, {.code = std::move(values)}).value();
}

}  // namespace

Simulation::Simulation(const RunOptions& options)
    : options_(options),
      plan_(plan_of(options.seed, options.nodes, kBudget)),
      world_(options.seed),
      net_(world_),
      conditions_(plan_.machines),
      rules_(world_, conditions_, kBudget),
      processes_(plan_.machines),
      start_at_(plan_.machines, TimePoint::max()) {
    net_.weather = plan_.weather;
    net_.tap = [this](sim::Datagram& datagram) {
        const auto machine = [](const Address& address) {
            return static_cast<std::size_t>(address.port() - 7400);
        };
        return !conditions_.is_cut(machine(datagram.from), machine(datagram.to));
    };
    seed_options_.world = static_cast<int>(plan_.nodes);
    seed_options_.state_dir = state_.path();
}

Simulation::~Simulation() {
    net_.tap = {};
}

Address Simulation::address_of(std::size_t machine) {
    const Address address = sim::DatagramNet::address(static_cast<unsigned>(machine + 1));
    // The port names the machine, so that the tap need not search.
    return address.with_port(static_cast<std::uint16_t>(7400 + machine));
}

void Simulation::say(const std::string& what) const {
    if (!options_.say) return;
    const auto since = world_.now() - formed_at_;
    options_.say(fmt::format(
        "{:9.4f} {}", has_formed_ ? std::chrono::duration<double>(since).count() : 0.0, what));
}

void Simulation::start_seed() {
    conditions_.change(world_.now(), [&] { conditions_.machine(0).running = true; });
    seed_ = std::make_unique<Seed>(net_, address_of(0), seed_options_, settings(options_.topology),
                                   world_.random().fork());
    seed_->on_view = [this](const View& view) {
        // A seed that was restarted begins with the view that it kept.
        rules_.viewed(0, seed_->server().self().seed, view, true);
        say("the seed adopts " + text_of(view));
    };
    const Witness self = seed_->server().self();
    conditions_.change(world_.now(), [&] { conditions_.machine(0).node = self.seed; });
    if (!join_.empty()) return;
    join_ = seed_->server().create_token({.uses = 10'000, .ttl = 24h}).value();
}

void Simulation::start(std::size_t machine) {
    if (processes_[machine]) return;
    start_at_[machine] = TimePoint::max();
    auto process = std::make_unique<Process>();
    process->program = std::make_unique<Workload>(
        rules_, machine, world_.random().fork(),
        options_.say ? Workload::Say([this](const std::string& what) { say(what); })
                     : Workload::Say());
    runtime::JoinTerms terms;
    terms.join = security::JoinString::parse(join_).value();
    terms.seeds = {address_of(0)};
    terms.addresses = {address_of(machine)};
    terms.host = fmt::format("machine-{}", machine);
    process->node = std::make_unique<Node>(net_,
                                           Node::Setup{.address = address_of(machine),
                                                       .terms = std::move(terms),
                                                       .config = settings(options_.topology),
                                                       .random = world_.random().fork()},
                                           *process->program);
    process->program->attach(*process->node, world_);
    conditions_.change(world_.now(), [&] {
        conditions_.machine(machine).running = true;
        conditions_.machine(machine).node = {};
    });
    // A machine that is paused or slow stays so.
    processes_[machine] = std::move(process);
    say(fmt::format("machine {} starts a process", machine));
}

void Simulation::end(std::size_t machine, bool silently) {
    if (!processes_[machine]) return;
    conditions_.change(world_.now(), [&] {
        conditions_.machine(machine).running = false;
        conditions_.machine(machine).pauses = 0;
        conditions_.machine(machine).slow = 0;
    });
    sim::DatagramHost& host = processes_[machine]->node->host();
    processes_[machine].reset();
    if (silently) net_.switch_machine_off(host);
    conditions_.disturb(world_.now());
}

bool Simulation::form() {
    start_seed();
    for (std::size_t i = 1; i <= plan_.nodes; ++i) start(i);
    const bool formed = world_.run_until(
        [&] {
            for (std::size_t i = 1; i <= plan_.nodes; ++i) {
                if (processes_[i]->program->rounds() == 0) return false;
            }
            return true;
        },
        30s);
    if (!formed) rules_.fail("calm", "the cluster did not form: " + everybody());
    formed_at_ = world_.now();
    has_formed_ = true;
    return formed;
}

/// Ten times per second: what happens outside of the processes.
void Simulation::tick() {
    for (std::size_t i = 1; i < processes_.size(); ++i) {
        if (!processes_[i]) {
            if (world_.now() >= start_at_[i]) start(i);
            continue;
        }
        Process& one = *processes_[i];
        if (!one.known && one.node->admitted()) {
            one.known = true;
            conditions_.change(world_.now(),
                               [&] { conditions_.machine(i).node = one.node->self().node; });
        }
        one.program->check_times();
        if (one.program->over()) {
            // A machine whose process was evicted or could not join starts another process.
            const bool again = !one.program->leaving() || one.program->evicted();
            end(i, false);
            if (again) start_at_[i] = world_.now() + 500ms;
        }
    }
    world_.after(kTick, [this] { tick(); });
}

std::size_t Simulation::running_voters(const View& view, std::size_t without) const {
    std::size_t running = 0;
    for (const Member& member : view.members) {
        const std::size_t machine = conditions_.machine_of(member.node);
        if (machine == Conditions::kNone || machine == without) continue;
        if (!processes_[machine]->program->evicted()) ++running;
    }
    // The seed comes back with what it kept.
    return running + (view.witness_votes() ? 1 : 0);
}

bool Simulation::majority_lost() const {
    const View* const last = rules_.last();
    return last != nullptr && running_voters(*last, 0) < last->majority();
}

std::string Simulation::everybody() const {
    std::string text;
    for (const auto& one : processes_) {
        if (one) text += "\n  " + one->program->state();
    }
    return text;
}

/// Why the cluster is not whole; empty if it is.
std::string Simulation::unrest() const {
    const View* const last = rules_.last();
    const engine::Context* world = nullptr;
    std::size_t running = 0;
    for (const auto& one : processes_) {
        if (!one) continue;
        ++running;
        const Workload& program = *one->program;
        if (program.over()) return "a process has ended";
        if (program.world() == nullptr) return "a process has no world";
        if (one->node->members().view() != *last) return "a process has another view";
        if (world == nullptr) world = program.world();
        if (program.world()->id != world->id) return "two processes have different worlds";
        if (program.rounds() < 3) return "a process has not completed three rounds in its world";
    }
    if (running != last->members.size()) return "the view has members that do not run";
    if (world != nullptr && world->pairs.size() != running) return "the world is not complete";
    return {};
}

bool Simulation::calm() {
    calm_ = true;
    say("the faults end");
    rules_.partition_ends();
    conditions_.change(world_.now(), [&] { conditions_.calm(); });
    net_.weather = plan_.weather;
    for (const auto& one : processes_) {
        if (!one) continue;
        world_.pause(*one->node, world_.now());
        world_.set_turn_cost(*one->node, Duration::zero());
        one->program->count_again();
    }
    revive_seed();
    const bool whole =
        world_.run_until([&] { return rules_.failed() || unrest().empty(); }, kCalmTime);
    return whole && !rules_.failed();
}

RunResult Simulation::run() {
    RunResult result;
    if (form()) {
        tick();
        for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
            if (options_.without.contains(i)) continue;
            world_.after(plan_.faults[i].at, [this, i] { apply(plan_.faults[i]); });
        }
        world_.run_until([&] { return rules_.failed(); }, plan_.span);
        if (!rules_.failed()) {
            const TimePoint began = world_.now();
            if (!calm() && !rules_.failed()) {
                result.beyond_repair = majority_lost() || !is_known_without(0);
                if (!result.beyond_repair) rules_.fail("calm", unrest() + everybody());
            }
            result.calm = world_.now() - began;
        }
    }
    result.rule = rules_.rule();
    result.failure = rules_.failure();
    result.at = result.elapsed = world_.now() - formed_at_;
    result.steps = world_.steps();
    result.trace = world_.trace_hash();
    result.nodes = plan_.nodes;
    result.faults = applied_;
    result.views = rules_.views();
    result.worlds = rules_.worlds();
    result.operations = rules_.counts.operations;
    result.errors = rules_.counts.errors;
    result.sums = rules_.counts.sums;
    result.messages = rules_.counts.messages;
    result.agreements = rules_.counts.agreements;
    result.slowest = rules_.slowest();
    clear_up();
    return result;
}

void Simulation::clear_up() {
    for (auto& one : processes_) one.reset();
    seed_.reset();
}

}  // namespace nexar::chaos

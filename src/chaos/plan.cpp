#include "chaos/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nexar::chaos {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSpareMachines = 3;

Duration between(Random& random, Duration least, Duration most) {
    return least + Duration(static_cast<Duration::rep>(
                       random.below(static_cast<std::uint64_t>((most - least).count()) + 1)));
}

std::size_t random_nodes(Random& random) {
    const std::uint64_t dice = random.below(10);
    if (dice < 6) return 2 + random.below(4);
    return dice < 9 ? 6 + random.below(4) : 10 + random.below(7);
}

/// How often the kinds occur, in the order of the enumeration.
constexpr std::array<std::uint64_t, static_cast<std::size_t>(FaultKind::count)> kWeights{
    4, 2, 4, 2, 2, 2, 2, 2, 2, 2, 4, 2, 1};

FaultKind random_kind(Random& random) {
    std::uint64_t total = 0;
    for (const std::uint64_t weight : kWeights) total += weight;
    std::uint64_t dice = random.below(total);
    std::size_t kind = 0;
    while (dice >= kWeights.at(kind)) dice -= kWeights.at(kind++);
    return static_cast<FaultKind>(kind);
}

Fault random_fault(Random random, const Plan& plan, Duration budget) {
    Fault fault{.kind = random_kind(random)};
    fault.at = between(random, 500ms, plan.span - 1s);
    fault.a = 1 + random.below(plan.machines - 1);
    fault.b = random.below(plan.machines);
    if (fault.a == fault.b) fault.b = 0;
    fault.side = random.next();
    switch (fault.kind) {
        case FaultKind::kill:
        case FaultKind::power_off:
            fault.lasts = random.chance(0.8) ? between(random, 10ms, 5s) : Duration::zero();
            break;
        case FaultKind::kill_seed:
            fault.lasts = between(random, 10ms, 6s);
            break;
        case FaultKind::pause:
            // Half of them are short enough to survive.
            fault.lasts = random.chance(0.5) ? between(random, 10ms, budget)
                                             : between(random, budget, budget * 8);
            break;
        case FaultKind::slow:
            fault.turn = between(random, 1ms, budget / 10);
            fault.lasts = between(random, 500ms, 6s);
            break;
        case FaultKind::storm:
            fault.weather = {.delay = between(random, 100us, budget / 50),
                             .jitter = between(random, 0us, budget / 10),
                             .loss = 0.05 + 0.25 * random.uniform(),
                             .duplicate = 0.2 * random.uniform()};
            fault.lasts = between(random, 500ms, 6s);
            break;
        default:
            fault.lasts = between(random, 10ms, budget * 10);
    }
    return fault;
}

}  // namespace

std::string_view name(FaultKind kind) noexcept {
    constexpr std::array<std::string_view, static_cast<std::size_t>(FaultKind::count)> kNames{
        "kill",  "power_off", "pause",     "slow", "cut",   "cut_pair", "isolate",
        "halve", "storm",     "kill_seed", "join", "leave", "quit"};
    const auto index = static_cast<std::size_t>(kind);
    return index < kNames.size() ? kNames[index] : "unknown";
}

std::string text_of(const Fault& fault) {
    const double lasts = seconds(fault.lasts);
    const auto with = [&](const std::string& what) {
        return fmt::format("{:7.3f} s: {}", seconds(fault.at), what);
    };
    const auto restart = [&] {
        return fault.lasts == Duration::zero()
                   ? std::string()
                   : fmt::format(", starts it again {:.3f} s later", lasts);
    };
    switch (fault.kind) {
        case FaultKind::kill:
            return with(fmt::format("kills the process on machine {}{}", fault.a, restart()));
        case FaultKind::power_off:
            return with(fmt::format("switches machine {} off{}", fault.a, restart()));
        case FaultKind::pause:
            return with(fmt::format("pauses machine {} for {:.3f} s", fault.a, lasts));
        case FaultKind::slow:
            return with(fmt::format("slows machine {} down by {:.1f} ms per turn for {:.3f} s",
                                    fault.a, seconds(fault.turn) * 1e3, lasts));
        case FaultKind::cut:
            return with(fmt::format("cuts the path from machine {} to {} for {:.3f} s", fault.a,
                                    fault.b, lasts));
        case FaultKind::cut_pair:
            return with(fmt::format("cuts the path between machines {} and {} for {:.3f} s",
                                    fault.a, fault.b, lasts));
        case FaultKind::isolate:
            return with(fmt::format("isolates machine {} for {:.3f} s", fault.a, lasts));
        case FaultKind::halve:
            return with(fmt::format("divides the machines in two ({:x}) for {:.3f} s",
                                    fault.side & 0xFFFFFU, lasts));
        case FaultKind::storm:
            return with(fmt::format("loses {:.0f} % of the packets for {:.3f} s",
                                    fault.weather.loss * 100, lasts));
        case FaultKind::kill_seed:
            return with(fmt::format("kills the seed, starts it again {:.3f} s later", lasts));
        case FaultKind::join:
            return with(fmt::format("starts a process on machine {}", fault.a));
        case FaultKind::leave:
            return with(fmt::format("lets machine {} leave at the next checkpoint", fault.a));
        case FaultKind::quit:
            return with(fmt::format("closes the node on machine {}", fault.a));
        case FaultKind::count:
            break;
    }
    return with("does nothing");
}

Plan plan_of(std::uint64_t seed, std::size_t nodes, Duration budget) {
    Random random(seed);
    Plan plan;
    const std::size_t chosen = random_nodes(random);
    plan.nodes = nodes == 0 ? chosen : nodes;
    plan.machines = 1 + plan.nodes + kSpareMachines;
    plan.span = 60s;
    plan.weather = {.delay = between(random, 50us, 2ms),
                    .jitter = random.chance(0.5) ? between(random, 0us, 1ms) : Duration::zero(),
                    .loss = random.chance(0.5) ? 0.02 * random.uniform() : 0,
                    .duplicate = random.chance(0.5) ? 0.02 * random.uniform() : 0};
    const std::size_t faults = 10 + random.below(14);
    for (std::size_t i = 0; i < faults; ++i) {
        plan.faults.push_back(random_fault(random.fork(), plan, budget));
    }
    std::ranges::sort(plan.faults, {}, &Fault::at);
    return plan;
}

}  // namespace nexar::chaos

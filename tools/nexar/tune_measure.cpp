// The measurements of nexar tune.

#include "tune_measure.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "bench/links.hpp"
#include "bench/measurement.hpp"
#include "bench/memory.hpp"
#include "bench/plan.hpp"
#include "compute/reduce.hpp"

namespace nexar {

namespace {

using bench::Subject;
using schedule::Collective;
using schedule::LinkTimes;
using schedule::MemoryTimes;

/// The median of several measurements of one subject and size: a single measurement may hit a
/// moment when the machine is busy.
double median_seconds(const Subject& subject, std::uint64_t bytes, const Communicator& world,
                      double seconds) {
    constexpr std::size_t kTimes = 5;
    bench::Plan plan;
    plan.subject = subject;
    plan.warmup = 5;
    plan.seconds = seconds / kTimes;
    plan.check = false;
    plan.dtype = DType::u8;
    std::array<double, kTimes> medians{};
    for (double& median : medians) median = bench::measure(plan, world, bytes).p50;
    std::ranges::sort(medians);
    return medians[kTimes / 2];
}

/// Repeats `once`, which processes `bytes` of memory, and returns its best time per byte.
double byte_seconds(std::uint64_t bytes, double seconds, const std::function<void()>& once) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    auto best = Clock::duration::max();
    do {
        const auto begin = Clock::now();
        once();
        best = std::min(best, Clock::now() - begin);
    } while (Clock::now() < until);
    return std::chrono::duration<double>(best).count() / static_cast<double>(bytes);
}

LinkTimes times_of_pair(const Communicator& pair, double seconds) {
    constexpr std::uint64_t kSmall = 8;
    const auto message = [&](Subject::Kind kind, std::uint64_t bytes) {
        return median_seconds({.kind = kind}, bytes, pair, seconds);
    };
    LinkTimes times;
    times.small = message(Subject::Kind::latency, kSmall);
    times.one_of_many = message(Subject::Kind::bandwidth, kSmall);
    times.medium = message(Subject::Kind::latency, LinkTimes::kMedium);
    times.large = message(Subject::Kind::latency, LinkTimes::kLarge);
    times.both_medium = message(Subject::Kind::exchange, LinkTimes::kMedium);
    times.both_large = message(Subject::Kind::exchange, LinkTimes::kLarge);
    return times;
}

/// How fast this rank reduces and copies.
void add_times_of_rank(LinkTimes& times, double seconds) {
    const std::uint64_t count = LinkTimes::kMedium / sizeof(float);
    const bench::Memory one(count, DType::f32);
    const bench::Memory other(count, DType::f32);
    auto* const to = static_cast<std::byte*>(one.buffer().data);
    auto* const from = static_cast<std::byte*>(other.buffer().data);
    std::memset(to, 0, LinkTimes::kMedium);
    std::memset(from, 0, LinkTimes::kMedium);
    const auto reducer = compute::reducer_for(DType::f32, ReduceOp::sum).value();
    times.reduce_byte =
        byte_seconds(LinkTimes::kMedium, seconds, [&] { reducer.fold(to, to, from, count); });
    times.copy_byte = byte_seconds(LinkTimes::kMedium, seconds,
                                   [&] { std::memcpy(to, from, LinkTimes::kMedium); });
}

MemoryTimes times_of_memory(const Communicator& local, const std::optional<Communicator>& pair,
                            double seconds) {
    const auto collective = [&](Collective operation, std::uint64_t bytes, const Communicator& of) {
        return median_seconds({.operation = operation}, bytes, of, seconds);
    };
    MemoryTimes times{.ranks = static_cast<std::uint32_t>(local.size())};
    times.barrier = collective(Collective::barrier, 0, local);
    times.medium = collective(Collective::broadcast, LinkTimes::kMedium, local);
    times.large = collective(Collective::broadcast, LinkTimes::kLarge, local);
    if (pair) times.pair_barrier = collective(Collective::barrier, 0, *pair);
    return times;
}

/// The ranks of the host of rank 0, and those of another host; empty if there is none.
struct TwoHosts {
    std::vector<int> here{};
    std::vector<int> there{};
};

TwoHosts two_hosts(const Communicator& world) {
    TwoHosts hosts;
    int other = -1;
    for (int rank = 0; rank < world.size(); ++rank) {
        if (world.host(rank) == world.host(0)) {
            hosts.here.push_back(rank);
            continue;
        }
        if (other < 0) other = world.host(rank);
        if (world.host(rank) == other) hosts.there.push_back(rank);
    }
    return hosts;
}

/// Several pairs of ranks of two hosts exchange large messages at the same time. Returns the limit
/// that their rates show, see shared_bandwidth().
double shared_by_pairs(const Communicator& world, const TwoHosts& hosts, double alone,
                       double seconds) {
    const std::size_t pairs = std::min(hosts.here.size(), hosts.there.size());
    std::optional<std::uint32_t> colour;
    for (std::size_t i = 0; i < pairs; ++i) {
        if (world.rank() == hosts.here[i] || world.rank() == hosts.there[i]) {
            colour = static_cast<std::uint32_t>(i);
        }
    }
    const std::optional<Communicator> pair = world.split(colour, 0);
    world.barrier().wait();
    std::array rate{0.0};
    if (pair) {
        const double time =
            median_seconds({.kind = Subject::Kind::exchange}, LinkTimes::kLarge, *pair, seconds);
        if (pair->rank() == 0) rate[0] = static_cast<double>(LinkTimes::kLarge) / time;
    }
    world.all_reduce(std::span(rate), sum).wait();
    return schedule::shared_bandwidth(static_cast<std::uint32_t>(pairs), alone, rate[0]);
}

}  // namespace

Tuned measure_world(const Node& node, double seconds) {
    const Communicator world = node.world();
    const TwoHosts hosts = two_hosts(world);
    const bench::LinkUse links = bench::links_between(node);
    Tuned tuned;
    const auto pair_of = [&](int other) { return world.subgroup(std::vector<int>{0, other}); };
    if (hosts.here.size() > 1) {
        const auto pair = pair_of(hosts.here[1]);
        if (pair) tuned.host = times_of_pair(*pair, seconds);
        const auto local = world.subgroup(hosts.here);
        if (local && links.all_share_memory(hosts.here)) {
            tuned.memory = times_of_memory(*local, pair, seconds);
        }
        world.barrier().wait();
    }
    if (!hosts.there.empty()) {
        if (const auto pair = pair_of(hosts.there[0])) tuned.fabric = times_of_pair(*pair, seconds);
        std::array alone{0.0};
        if (tuned.fabric) {
            alone[0] = static_cast<double>(LinkTimes::kLarge) / tuned.fabric->both_large;
        }
        world.broadcast(std::span(alone), 0).wait();
        if (std::min(hosts.here.size(), hosts.there.size()) > 1) {
            tuned.shared_bandwidth = shared_by_pairs(world, hosts, alone[0], seconds);
        }
    }
    if (world.rank() == 0) {
        LinkTimes rank;
        add_times_of_rank(rank, seconds);
        for (auto* const times : {&tuned.host, &tuned.fabric}) {
            if (!*times) continue;
            (*times)->reduce_byte = rank.reduce_byte;
            (*times)->copy_byte = rank.copy_byte;
        }
        if (tuned.memory) tuned.memory->copy_byte = rank.copy_byte;
    }
    world.barrier().wait();
    return tuned;
}

}  // namespace nexar

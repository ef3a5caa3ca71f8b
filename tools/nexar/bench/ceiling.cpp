#include "bench/ceiling.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <nexar/operators.hpp>
#include <span>

#include "bench/exercise.hpp"
#include "bench/memory.hpp"

namespace nexar::bench {

namespace {

using schedule::Collective;
using Kind = Subject::Kind;

constexpr std::chrono::milliseconds kCopyTime{10};             // per size
constexpr std::uint64_t kCopyBatch = std::uint64_t{1} << 16U;  // bytes between two clock reads

/// The number of ranks that could copy at the same time.
int copiers(const Subject& subject, int world) noexcept {
    if (subject.kind == Kind::collective) return world;
    return subject.kind == Kind::exchange ? 2 : 1;
}

/// Bytes per second that this rank reads and writes with memcpy.
double copy_rate(const Memory& from, const Memory& to, std::uint64_t bytes) {
    const std::uint64_t batch = std::max<std::uint64_t>(1, kCopyBatch / bytes);
    const auto begin = std::chrono::steady_clock::now();
    std::chrono::duration<double> took{};
    std::uint64_t copied = 0;
    while (took < kCopyTime) {
        for (std::uint64_t i = 0; i < batch; ++i) {
            std::memcpy(to.buffer().data, from.buffer().data, bytes);
            asm volatile("" : : "r"(to.buffer().data) : "memory");  // the copy must happen
        }
        copied += batch * bytes;
        took = std::chrono::steady_clock::now() - begin;
    }
    return 2 * static_cast<double>(copied) / took.count();
}

}  // namespace

double moved_bytes(const Subject& subject, std::uint32_t world, std::uint64_t bytes) noexcept {
    const auto whole = static_cast<double>(bytes);
    if (subject.kind == Kind::bandwidth) return whole * kWindow;
    if (subject.kind != Kind::collective) return 2 * whole;
    const double others = world - 1;
    switch (subject.operation) {
        case Collective::all_reduce:
            return 2 * others * whole;
        case Collective::gather:
        case Collective::scatter:
            return others * whole / world;
        case Collective::barrier:
            return 0;
        default:
            return others * whole;
    }
}

double memory_bytes(const Subject& subject, std::uint32_t world, std::uint64_t bytes) noexcept {
    const auto whole = static_cast<double>(bytes);
    if (subject.kind != Kind::collective) return whole * (subject.kind == Kind::exchange ? 4 : 2);
    switch (subject.operation) {
        case Collective::broadcast:
            return world * whole;
        case Collective::reduce:
        case Collective::all_gather:
        case Collective::reduce_scatter:
            return (world + 1) * whole;
        case Collective::gather:
        case Collective::scatter:
            return 2 * whole;
        case Collective::barrier:
            return 0;
        default:
            return 2.0 * world * whole;
    }
}

std::vector<double> copy_rates(const Plan& plan, const Communicator& world) {
    std::vector<double> rates(plan.sizes.size());
    if (plan.format == Format::osu && plan.json_path.empty()) return rates;
    const bool copies = world.rank() < copiers(plan.subject, world.size());
    const std::uint64_t largest = copies ? std::ranges::max(plan.sizes) : 0;
    const Memory from(largest, DType::u8);
    const Memory to(largest, DType::u8);
    if (largest > 0) {
        std::memset(from.buffer().data, 1, largest);
        std::memset(to.buffer().data, 2, largest);
    }
    for (std::size_t i = 0; i < rates.size(); ++i) {
        world.barrier().wait();
        if (copies && plan.sizes[i] > 0) rates[i] = copy_rate(from, to, plan.sizes[i]);
    }
    world.all_reduce(std::span(rates), sum).wait();
    return rates;
}

double part_of_ceiling(const Subject& subject, std::uint32_t world, const Measured& measured,
                       double copy_rate) noexcept {
    if (copy_rate <= 0 || measured.p50 <= 0) return 0;
    return memory_bytes(subject, world, measured.extent.bytes) / copy_rate / measured.p50;
}

}  // namespace nexar::bench

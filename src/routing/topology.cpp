#include "routing/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <system_error>

#include "base/assert.hpp"
#include "base/mix.hpp"
#include "base/printable.hpp"

namespace nexar::routing {

namespace {

constexpr std::string_view kFull = "full";
constexpr std::string_view kHypercube = "hypercube";
constexpr std::string_view kRegularPrefix = "k_regular:";

bool allowed_degree(std::uint32_t degree) noexcept {
    return degree % 2 == 0 && degree >= Topology::kLeastDegree && degree <= Topology::kMostDegree;
}

std::optional<std::uint32_t> parsed_degree(std::string_view digits) noexcept {
    std::uint32_t degree = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), degree);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    if (!whole || !allowed_degree(degree)) return std::nullopt;
    return degree;
}

/// The hash number `number` of a rank. A bijection of the two, so that members never tie.
std::uint64_t rank_hash(Rank rank, std::uint32_t number) noexcept {
    return mixed((std::uint64_t{number} << 32U) | rank.value());
}

/// The members in the order of a cycle.
std::vector<Position> order_of_cycle(std::span<const Rank> ranks, std::uint32_t cycle) {
    std::vector<Position> order(ranks.size());
    std::iota(order.begin(), order.end(), Position{0});
    if (cycle == 0) return order;
    std::vector<std::uint64_t> hashes(ranks.size());
    std::ranges::transform(ranks, hashes.begin(), [&](Rank r) { return rank_hash(r, cycle); });
    std::ranges::sort(order, {}, [&](Position member) { return hashes[member]; });
    return order;
}

std::vector<Edge> cycle_edges(std::span<const Rank> ranks, std::uint32_t cycles) {
    std::vector<Edge> edges;
    edges.reserve(ranks.size() * cycles);
    for (std::uint32_t cycle = 0; cycle < cycles; ++cycle) {
        const std::vector<Position> order = order_of_cycle(ranks, cycle);
        Position before = order.back();
        for (const Position member : order) {
            edges.push_back({before, member});
            before = member;
        }
    }
    return edges;
}

std::vector<Edge> hypercube_edges(std::span<const Rank> ranks) {
    const std::vector<Position> slots = hypercube_slots(ranks);
    std::vector<Position> members(slots.size());
    for (Position member = 0; member < slots.size(); ++member) members[slots[member]] = member;
    std::vector<Edge> edges;
    for (Position slot = 0; slot < slots.size(); ++slot) {
        for (Position bit = 1; bit < slots.size(); bit <<= 1U) {
            const Position other = slot ^ bit;
            if (slot < other && other < slots.size()) {
                edges.push_back({members[slot], members[other]});
            }
        }
    }
    return edges;
}

}  // namespace

Result<Topology> Topology::parse(std::string_view text) {
    if (text == kFull) return Topology();
    if (text == kHypercube) return hypercube();
    if (text.starts_with(kRegularPrefix)) {
        const auto degree = parsed_degree(text.substr(kRegularPrefix.size()));
        // Only the spelling of text(), so that members can compare topologies as texts.
        if (degree && k_regular(*degree).text() == text) return k_regular(*degree);
    }
    return Error(
        Errc::invalid_argument,
        fmt::format("{} is not a topology; write {}, {}, or {}K, where K is an even number "
                    "from {} to {}, for example {}8",
                    in_quotes(text), kFull, kHypercube, kRegularPrefix, kLeastDegree, kMostDegree,
                    kRegularPrefix));
}

Topology Topology::k_regular(std::uint32_t degree) {
    NEXAR_ASSERT(allowed_degree(degree));
    return {Kind::k_regular, degree};
}

std::string Topology::text() const {
    switch (kind_) {
        case Kind::full:
            return std::string(kFull);
        case Kind::k_regular:
            return fmt::format("{}{}", kRegularPrefix, degree_);
        case Kind::hypercube:
            break;
    }
    return std::string(kHypercube);
}

bool Topology::complete(std::size_t members) const noexcept {
    return kind_ == Kind::full || (kind_ == Kind::k_regular && members <= std::size_t{degree_} + 1);
}

std::size_t Topology::most_members(std::uint32_t hops) const noexcept {
    if (degree_ == kLeastDegree) return 2 * std::size_t{hops} + 1;
    return std::numeric_limits<std::size_t>::max();
}

std::vector<Edge> Topology::edges(std::span<const Rank> ranks) const {
    NEXAR_ASSERT(!complete(ranks.size()), "the caller must not list the edges of a full graph");
    if (kind_ == Kind::hypercube) return hypercube_edges(ranks);
    return cycle_edges(ranks, degree_ / 2);
}

std::vector<Position> hypercube_slots(std::span<const Rank> ranks) {
    constexpr auto kNone = static_cast<Position>(-1);
    const auto n = static_cast<Position>(ranks.size());
    const Position mask = std::bit_ceil(n) - 1;
    std::vector<Position> slots(n, kNone);
    std::vector<bool> taken(n);
    const auto take = [&](Position member, Position slot) {
        if (slot >= n || taken[slot]) return;
        slots[member] = slot;
        taken[slot] = true;
    };
    for (Position member = 0; member < n; ++member) take(member, ranks[member].value() & mask);
    // Almost always ends before the limit, which only proves that it ends.
    const Position most_choices = 16 * n;
    Position first_free = 0;  // or a taken slot below it
    for (Position member = 0; member < n; ++member) {
        for (Position choice = 1; slots[member] == kNone && choice <= most_choices; ++choice) {
            take(member, static_cast<Position>(rank_hash(ranks[member], choice)) & mask);
        }
        for (; slots[member] == kNone; ++first_free) take(member, first_free);
    }
    return slots;
}

}  // namespace nexar::routing

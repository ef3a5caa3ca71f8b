#include "schedule/registry.hpp"

#include <array>

#include "schedule/all_gather.hpp"
#include "schedule/all_reduce.hpp"
#include "schedule/all_to_all.hpp"
#include "schedule/barrier.hpp"
#include "schedule/broadcast.hpp"
#include "schedule/gather.hpp"
#include "schedule/leaders.hpp"
#include "schedule/memory_slots.hpp"
#include "schedule/reduce.hpp"
#include "schedule/reduce_scatter.hpp"
#include "schedule/scan.hpp"
#include "schedule/scatter.hpp"
#include "schedule/shares.hpp"
#include "schedule/spanning.hpp"

namespace nexar::schedule {

namespace {

constexpr Traits kPlain{};
constexpr Traits kSegments{.segments = true};
constexpr Traits kCanonical{.keeps_order = true, .canonical = true};
constexpr Traits kCanonicalSegments{.keeps_order = true, .canonical = true, .segments = true};
constexpr Traits kCounts{.takes_counts = true};
constexpr Traits kCountsSegments{.takes_counts = true, .segments = true};
constexpr Traits kCanonicalCounts{.keeps_order = true, .canonical = true, .takes_counts = true};
constexpr Traits kPairs{.takes_counts = true, .window = 1};
constexpr Traits kWindowed{.takes_counts = true, .window = kWindowAsRequested};
constexpr Traits kOrder{.keeps_order = true};
constexpr Traits kOrderSegments{.keeps_order = true, .segments = true};
constexpr Traits kGivenTree{.needs_tree = true};
constexpr Traits kGivenTreeSegments{.segments = true, .needs_tree = true};
constexpr Traits kGivenTreeCounts{.takes_counts = true, .needs_tree = true};

/// In memory, all folds follow the canonical tree.
constexpr Traits in_memory(Puts puts, std::uint32_t stages = 1) {
    return {.keeps_order = true,
            .canonical = true,
            .segments = true,
            .medium = Medium::memory,
            .stages = stages,
            .puts = puts};
}
/// The same for chunks of different sizes that all ranks know.
constexpr Traits counts_in_memory(Puts puts) {
    Traits traits = in_memory(puts);
    traits.takes_counts = true;
    return traits;
}
constexpr Traits kPrefixInMemory{
    .keeps_order = true, .segments = true, .medium = Medium::memory, .puts = Puts::vector};

constexpr Traits kTwoLevel{.two_level = true};
constexpr Traits kTwoLevelSegments{.segments = true, .two_level = true};
constexpr Traits kTwoLevelCounts{.takes_counts = true, .two_level = true};
constexpr Traits kTwoLevelFold{.keeps_order = true, .canonical = true, .two_level = true};
constexpr Traits kTwoLevelFoldSegments{
    .keeps_order = true, .canonical = true, .segments = true, .two_level = true};
constexpr Traits kTwoLevelFoldCounts{
    .keeps_order = true, .canonical = true, .takes_counts = true, .two_level = true};

constexpr std::array kAlgorithms{
    Algorithm{Collective::all_reduce, "recursive_doubling", kCanonical,
              all_reduce::recursive_doubling, Peers::partners},
    Algorithm{Collective::all_reduce, "ring", kPlain, all_reduce::ring, Peers::next},
    Algorithm{Collective::all_reduce, "segmented_ring", kSegments, all_reduce::segmented_ring,
              Peers::next},
    Algorithm{Collective::all_reduce, "halving_doubling", kCanonical, all_reduce::halving_doubling,
              Peers::partners},
    Algorithm{Collective::all_reduce, "reduce_scatter_all_gather", kCanonical,
              all_reduce::reduce_scatter_all_gather, Peers::partners},
    Algorithm{Collective::all_reduce, "tree", kCanonicalSegments, all_reduce::tree},
    Algorithm{Collective::reduce, "binomial", kCanonicalSegments, reduce::binomial},
    Algorithm{Collective::reduce, "reduce_scatter_gather", kCanonical,
              reduce::reduce_scatter_gather, Peers::partners},
    Algorithm{Collective::broadcast, "flat", kPlain, broadcast::flat},
    Algorithm{Collective::broadcast, "binomial", kSegments, broadcast::binomial},
    Algorithm{Collective::broadcast, "scatter_all_gather", kPlain, broadcast::scatter_all_gather},
    Algorithm{Collective::broadcast, "chain", kSegments, broadcast::chain, Peers::next},
    Algorithm{Collective::all_gather, "ring", kCountsSegments, all_gather::ring, Peers::next},
    Algorithm{Collective::all_gather, "recursive_doubling", kCounts, all_gather::recursive_doubling,
              Peers::partners},
    Algorithm{Collective::all_gather, "bruck", kCounts, all_gather::bruck, Peers::shifted},
    Algorithm{Collective::gather, "flat", kCounts, gather::flat},
    Algorithm{Collective::gather, "binomial", kPlain, gather::binomial},
    Algorithm{Collective::scatter, "flat", kCounts, scatter::flat},
    Algorithm{Collective::scatter, "binomial", kPlain, scatter::binomial},
    Algorithm{Collective::reduce_scatter, "ring", kCountsSegments, reduce_scatter::ring,
              Peers::next},
    Algorithm{Collective::reduce_scatter, "halving", kCanonicalCounts, reduce_scatter::halving,
              Peers::partners},
    Algorithm{Collective::all_to_all, "pairwise", kPairs, all_to_all::pairwise, Peers::all},
    Algorithm{Collective::all_to_all, "windowed", kWindowed, all_to_all::windowed, Peers::all},
    Algorithm{Collective::all_to_all, "bruck", kPlain, all_to_all::bruck, Peers::shifted},
    Algorithm{Collective::scan, "recursive_doubling", kOrder, scan::recursive_doubling,
              Peers::shifted},
    Algorithm{Collective::scan, "linear", kOrderSegments, scan::linear, Peers::next_rank},
    Algorithm{Collective::exclusive_scan, "recursive_doubling", kOrder,
              scan::exclusive_recursive_doubling, Peers::shifted},
    Algorithm{Collective::exclusive_scan, "linear", kOrderSegments, scan::exclusive_linear,
              Peers::next_rank},
    Algorithm{Collective::barrier, "flat", kPlain, barrier::flat},
    Algorithm{Collective::barrier, "dissemination", kPlain, barrier::dissemination, Peers::shifted},
    Algorithm{Collective::all_reduce, "spanning_tree", kGivenTreeSegments, spanning::all_reduce,
              Peers::tree},
    Algorithm{Collective::reduce, "spanning_tree", kGivenTreeSegments, spanning::reduce,
              Peers::tree},
    Algorithm{Collective::broadcast, "spanning_tree", kGivenTreeSegments, spanning::broadcast,
              Peers::tree},
    Algorithm{Collective::all_gather, "spanning_tree", kGivenTreeCounts, spanning::all_gather,
              Peers::tree},
    Algorithm{Collective::gather, "spanning_tree", kGivenTree, spanning::gather, Peers::tree},
    Algorithm{Collective::scatter, "spanning_tree", kGivenTree, spanning::scatter, Peers::tree},
    Algorithm{Collective::barrier, "spanning_tree", kGivenTree, spanning::barrier, Peers::tree},
    Algorithm{Collective::all_reduce, "leaders", kTwoLevelFold, leaders::all_reduce},
    Algorithm{Collective::all_reduce, "shares", kTwoLevelFold, shares::all_reduce},
    Algorithm{Collective::reduce, "leaders", kTwoLevelFoldSegments, leaders::reduce},
    Algorithm{Collective::reduce, "shares", kTwoLevelFold, shares::reduce},
    Algorithm{Collective::broadcast, "leaders", kTwoLevelSegments, leaders::broadcast},
    Algorithm{Collective::broadcast, "shares", kTwoLevel, shares::broadcast},
    Algorithm{Collective::all_gather, "leaders", kTwoLevelCounts, leaders::all_gather},
    Algorithm{Collective::all_gather, "shares", kTwoLevelCounts, shares::all_gather},
    Algorithm{Collective::gather, "leaders", kTwoLevel, leaders::gather},
    Algorithm{Collective::gather, "shares", kTwoLevel, shares::gather},
    Algorithm{Collective::scatter, "leaders", kTwoLevel, leaders::scatter},
    Algorithm{Collective::scatter, "shares", kTwoLevel, shares::scatter},
    Algorithm{Collective::reduce_scatter, "shares", kTwoLevelFoldCounts, shares::reduce_scatter},
    Algorithm{Collective::barrier, "leaders", kTwoLevel, leaders::barrier},
    Algorithm{Collective::all_reduce, "slots", in_memory(Puts::vector), slots::all_reduce},
    Algorithm{Collective::all_reduce, "slices", in_memory(Puts::chunks, 2), slices::all_reduce},
    Algorithm{Collective::reduce, "slots", in_memory(Puts::vector), slots::reduce},
    Algorithm{Collective::reduce, "slices", in_memory(Puts::chunks, 2), slices::reduce},
    Algorithm{Collective::broadcast, "slots", in_memory(Puts::vector), slots::broadcast},
    Algorithm{Collective::all_gather, "slots", counts_in_memory(Puts::chunk), slots::all_gather},
    Algorithm{Collective::gather, "slots", in_memory(Puts::chunk), slots::gather},
    Algorithm{Collective::scatter, "slots", in_memory(Puts::chunks), slots::scatter},
    Algorithm{Collective::reduce_scatter, "slots", counts_in_memory(Puts::chunks),
              slots::reduce_scatter},
    Algorithm{Collective::all_to_all, "slots", in_memory(Puts::chunks), slots::all_to_all},
    Algorithm{Collective::scan, "slots", kPrefixInMemory, slots::scan},
    Algorithm{Collective::exclusive_scan, "slots", kPrefixInMemory, slots::exclusive_scan},
    Algorithm{Collective::barrier, "slots", in_memory(Puts::nothing), slots::barrier},
};

}  // namespace

std::span<const Algorithm> algorithms() noexcept {
    return kAlgorithms;
}

const Algorithm* find_algorithm(Collective operation, std::string_view name) noexcept {
    for (const Algorithm& algorithm : kAlgorithms)
        if (algorithm.operation == operation && algorithm.name == name) return &algorithm;
    return nullptr;
}

}  // namespace nexar::schedule

#include "schedule/registry.hpp"

#include <array>

#include "schedule/all_gather.hpp"
#include "schedule/all_reduce.hpp"
#include "schedule/all_to_all.hpp"
#include "schedule/barrier.hpp"
#include "schedule/broadcast.hpp"
#include "schedule/gather.hpp"
#include "schedule/reduce.hpp"
#include "schedule/reduce_scatter.hpp"
#include "schedule/scan.hpp"
#include "schedule/scatter.hpp"

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
constexpr Traits kGivenTree{.segments = true, .needs_tree = true};

constexpr std::array kAlgorithms{
    Algorithm{Operation::all_reduce, "recursive_doubling", kCanonical,
              all_reduce::recursive_doubling},
    Algorithm{Operation::all_reduce, "ring", kPlain, all_reduce::ring},
    Algorithm{Operation::all_reduce, "segmented_ring", kSegments, all_reduce::segmented_ring},
    Algorithm{Operation::all_reduce, "halving_doubling", kCanonical, all_reduce::halving_doubling},
    Algorithm{Operation::all_reduce, "reduce_scatter_all_gather", kCanonical,
              all_reduce::reduce_scatter_all_gather},
    Algorithm{Operation::all_reduce, "tree", kCanonicalSegments, all_reduce::tree},
    Algorithm{Operation::reduce, "binomial", kCanonicalSegments, reduce::binomial},
    Algorithm{Operation::reduce, "reduce_scatter_gather", kCanonical,
              reduce::reduce_scatter_gather},
    Algorithm{Operation::broadcast, "flat", kPlain, broadcast::flat},
    Algorithm{Operation::broadcast, "binomial", kSegments, broadcast::binomial},
    Algorithm{Operation::broadcast, "scatter_all_gather", kPlain, broadcast::scatter_all_gather},
    Algorithm{Operation::broadcast, "chain", kSegments, broadcast::chain},
    Algorithm{Operation::broadcast, "spanning_tree", kGivenTree, broadcast::spanning_tree},
    Algorithm{Operation::all_gather, "ring", kCountsSegments, all_gather::ring},
    Algorithm{Operation::all_gather, "recursive_doubling", kCounts, all_gather::recursive_doubling},
    Algorithm{Operation::all_gather, "bruck", kCounts, all_gather::bruck},
    Algorithm{Operation::gather, "flat", kCounts, gather::flat},
    Algorithm{Operation::gather, "binomial", kPlain, gather::binomial},
    Algorithm{Operation::scatter, "flat", kCounts, scatter::flat},
    Algorithm{Operation::scatter, "binomial", kPlain, scatter::binomial},
    Algorithm{Operation::reduce_scatter, "ring", kCountsSegments, reduce_scatter::ring},
    Algorithm{Operation::reduce_scatter, "halving", kCanonicalCounts, reduce_scatter::halving},
    Algorithm{Operation::all_to_all, "pairwise", kPairs, all_to_all::pairwise},
    Algorithm{Operation::all_to_all, "windowed", kWindowed, all_to_all::windowed},
    Algorithm{Operation::all_to_all, "bruck", kPlain, all_to_all::bruck},
    Algorithm{Operation::scan, "recursive_doubling", kOrder, scan::recursive_doubling},
    Algorithm{Operation::scan, "linear", kOrderSegments, scan::linear},
    Algorithm{Operation::exclusive_scan, "recursive_doubling", kOrder,
              scan::exclusive_recursive_doubling},
    Algorithm{Operation::exclusive_scan, "linear", kOrderSegments, scan::exclusive_linear},
    Algorithm{Operation::barrier, "flat", kPlain, barrier::flat},
    Algorithm{Operation::barrier, "dissemination", kPlain, barrier::dissemination},
};

}  // namespace

std::span<const Algorithm> algorithms() noexcept {
    return kAlgorithms;
}

const Algorithm* find_algorithm(Operation operation, std::string_view name) noexcept {
    for (const Algorithm& algorithm : kAlgorithms)
        if (algorithm.operation == operation && algorithm.name == name) return &algorithm;
    return nullptr;
}

}  // namespace nexar::schedule

#pragma once

#include <cstdint>
#include <nexar/result.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/cost.hpp"
#include "schedule/hops.hpp"
#include "schedule/links.hpp"
#include "schedule/memory_cost.hpp"

namespace nexar::schedule {

/// Which results of a floating-point reduction are guaranteed to have equal bits.
enum class Reproducibility : std::uint8_t {
    ranks,  // those of all ranks
    runs,  // also those of every run with as many ranks, whichever algorithm and segment are chosen
};

/// Everything that the choice of an algorithm depends on besides the workload. Equal on all members
/// of a communicator, so that all of them make the same choice.
struct Profile {
    Links links{};
    Hops hops{};                            // in a sparse topology
    Rates rates{};                          // of links between hosts
    Rates host_rates = kSharedMemoryRates;  // of links within a host
    Memory memory{};                        // shared by all ranks, if any
    Reproducibility reproducibility = Reproducibility::ranks;
    /// Algorithms to use whatever they cost: one name, or a list of operation=algorithm entries
    /// with optional maximum sizes of the vector, such as "all_reduce=tree:64KiB,all_reduce=ring";
    /// the first matching entry counts. Empty: the fastest algorithm.
    std::string forced{};
    std::uint64_t segment_bytes = 0;  // 0: the fastest
    /// Messages up to this size travel on the lane, directly behind their header.
    std::uint64_t eager_bytes = std::uint64_t{64} << 10U;

    /// The rates of the slowest link.
    const Rates& slowest_rates() const noexcept {
        return links.slowest() == LinkKind::host ? host_rates : rates;
    }

    /// The algorithm forced for an operation on this many bytes; empty if none is.
    std::string_view forced_for(Collective operation, std::uint64_t bytes) const;

    /// A hash over all members: profiles with equal hashes make equal choices.
    std::uint64_t hash() const noexcept;
};

/// Checks that `forced` is a valid value of Profile::forced that lists operations.
Result<void> check_forced(std::string_view forced);

/// The properties of a collective that the choice depends on; equal on all ranks.
struct Workload {
    Collective operation = Collective::barrier;
    std::uint32_t world = 1;
    std::uint64_t count = 0;    // elements of the whole vector
    std::uint64_t largest = 0;  // elements of the largest chunk
    std::uint32_t element_bytes = 1;
    bool commutative = true;
    bool has_counts = false;  // a v-variant
    /// Later calls may have begun already, because this one had to exchange counts first.
    bool begins_late = false;

    std::uint64_t bytes() const noexcept { return count * element_bytes; }
};

struct Choice {
    const Algorithm* algorithm = nullptr;
    std::uint64_t segment = 0;  // elements
    double seconds = 0;         // predicted
};

/// Every algorithm that can run the workload, each with its best segment: those in shared memory
/// before those over links, and fastest first. Algorithms
/// with the same predicted time keep the order of algorithms().
std::vector<Choice> ranked(const Workload& workload, const Profile& profile);

/// The algorithm to use. Fails with bad_config when the profile forces an algorithm that does not
/// exist or cannot run this workload; the error says why and lists those that can.
Result<Choice> choose(const Workload& workload, const Profile& profile);

}  // namespace nexar::schedule

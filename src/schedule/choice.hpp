#pragma once

#include <cstdint>
#include <nexar/result.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/cost.hpp"
#include "schedule/links.hpp"

namespace nexar::schedule {

/// How far the bits of a result may depend on how it was made.
enum class Reproducibility : std::uint8_t {
    ranks,  // the same on all ranks
    runs,   // and for every algorithm, segment and message size in a world of one size
};

/// What all members of a communicator agreed on. The choice of an algorithm depends on it and on
/// nothing else that a rank knows alone.
struct Profile {
    Links links{};
    Rates rates{};       // of links between machines
    Rates host_rates{};  // of links within one
    Reproducibility reproducibility = Reproducibility::ranks;
    /// Algorithms that are taken whatever they cost: a name, or a list for some operations, also
    /// only up to a size of the vector, "all_reduce=tree:64KiB,all_reduce=ring": the first entry
    /// that fits counts. Empty: the fastest one.
    std::string forced{};
    std::uint64_t segment_bytes = 0;  // 0: the best one
    /// Up to here a message travels on the lane, behind its header.
    std::uint64_t eager_bytes = std::uint64_t{64} << 10U;

    /// By which algorithms are compared: those of the slowest link, which all ranks wait for.
    const Rates& slowest_rates() const noexcept {
        return links.slowest() == LinkKind::host ? host_rates : rates;
    }

    /// The algorithm that is forced for an operation on so many bytes; empty: none.
    std::string_view forced_for(Collective operation, std::uint64_t bytes) const;

    /// Of all that is in it: two profiles with one hash make the same choices.
    std::uint64_t hash() const noexcept;
};

/// Whether a text is one that Profile::forced takes: a list of operations and their algorithms.
Result<void> check_forced(std::string_view forced);

/// A collective, as far as a choice depends on it; equal on all ranks.
struct Workload {
    Collective operation = Collective::barrier;
    std::uint32_t world = 1;
    std::uint64_t count = 0;    // elements of the whole vector
    std::uint64_t largest = 0;  // of the largest chunk
    std::uint32_t element_bytes = 1;
    bool commutative = true;
    bool has_counts = false;  // a v-variant

    std::uint64_t bytes() const noexcept { return count * element_bytes; }
};

struct Choice {
    const Algorithm* algorithm = nullptr;
    std::uint64_t segment = 0;  // elements
    double seconds = 0;         // predicted
};

/// Every algorithm that may be taken, each with its best segment, the fastest first. Of those that
/// are predicted to take the same time the one that stands first in algorithms().
std::vector<Choice> ranked(const Workload& workload, const Profile& profile);

/// The one that is taken. Fails with bad_config when the profile forces one that is not there, or
/// may not be taken for this workload; the error lists those that may.
Result<Choice> choose(const Workload& workload, const Profile& profile);

}  // namespace nexar::schedule

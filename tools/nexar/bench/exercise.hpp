#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/communicator.hpp>
#include <nexar/result.hpp>
#include <string>

#include "bench/plan.hpp"

namespace nexar::bench {

/// The size of one row: the number of elements that fit into the requested size. If the operation
/// divides the vector, the number is rounded down to a multiple of the number of ranks, with at
/// least one element per rank.
struct Extent {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;  // elements
};
Extent extent_of(const Plan& plan, std::uint32_t world, std::uint64_t size);

/// Messages in flight in "bandwidth": the window of the OSU benchmarks.
inline constexpr std::size_t kWindow = 64;

/// The operation under measurement, for one size and on one rank: owns the memory and runs one
/// iteration. All ranks make the same calls in the same order. Throws nexar::Error.
class Exercise {
public:
    Exercise() = default;
    Exercise(const Exercise&) = delete;
    Exercise& operator=(const Exercise&) = delete;
    virtual ~Exercise() = default;

    /// Fills the inputs, and fills the outputs with values that cannot be a correct result.
    virtual void fill() = 0;

    /// Runs one iteration. Returns the seconds to report, or 0 on a rank whose time is irrelevant.
    virtual double run() = 0;

    /// The number of wrong elements on this rank after a run.
    virtual std::uint64_t wrong() const = 0;

    /// True if a rank may finish an iteration before others begin it, and would run ahead.
    virtual bool runs_ahead() const noexcept { return false; }
};

std::unique_ptr<Exercise> make_exercise(const Plan& plan, const Communicator& world,
                                        const Extent& extent);

/// For messages between ranks 0 and 1.
std::unique_ptr<Exercise> make_message_exercise(const Plan& plan, const Communicator& world,
                                                const Extent& extent);

/// The algorithm that a collective of this extent uses; "-" if the subject is not a collective.
std::string algorithm_of(const Plan& plan, std::uint32_t world, const Extent& extent);

}  // namespace nexar::bench

#pragma once

#include <cstdint>
#include <memory>
#include <nexar/communicator.hpp>
#include <nexar/result.hpp>
#include <string>

#include "bench/plan.hpp"

namespace nexar::bench {

/// How large one row is: the elements that fill the size, rounded down to a multiple of the ranks
/// where the vector is divided, but at least one for each.
struct Extent {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;  // elements
};
Extent extent_of(const Plan& plan, std::uint32_t world, std::uint64_t size);

/// What is measured, of one size and at one rank: its memory, and how it is done once. All ranks
/// call the same in the same order. Throws nexar::Error.
class Exercise {
public:
    Exercise() = default;
    Exercise(const Exercise&) = delete;
    Exercise& operator=(const Exercise&) = delete;
    virtual ~Exercise() = default;

    /// Inputs as they are to be, outputs with nothing that could be right.
    virtual void fill() = 0;

    /// Does it once: the seconds that count, 0 at a rank whose time says nothing.
    virtual double run() = 0;

    /// Elements at this rank that are not what they must be, after a run.
    virtual std::uint64_t wrong() const = 0;

    /// Some rank may be done before others have begun, and would run ahead.
    virtual bool runs_ahead() const noexcept { return false; }
};

std::unique_ptr<Exercise> make_exercise(const Plan& plan, const Communicator& world,
                                        const Extent& extent);

/// Of messages between ranks 0 and 1.
std::unique_ptr<Exercise> make_message_exercise(const Plan& plan, const Communicator& world,
                                                const Extent& extent);

/// Which algorithm a collective of this extent takes; "-" where there is none.
std::string algorithm_of(const Plan& plan, std::uint32_t world, const Extent& extent);

}  // namespace nexar::bench

#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "schedule/hops.hpp"
#include "schedule/registry.hpp"
#include "support/sanitized.hpp"

namespace nexar::schedule {

/// How gtest and ctest name a test with this parameter.
std::ostream& operator<<(std::ostream& out, const Algorithm& algorithm);

}  // namespace nexar::schedule

namespace nexar::schedule::testing {

using nexar::testing::kSanitized;

/// One collective to build and check.
struct Case {
    const Algorithm* algorithm = nullptr;
    std::uint32_t world = 1;
    std::uint32_t root = 0;
    /// Elements of the vector; for all_to_all, of each chunk.
    std::uint64_t count = 0;
    bool in_place = false;
    std::uint64_t segment = 0;
    std::uint32_t window = 4;
    /// If not 0: chunks of uneven sizes up to `count`, some of them empty, drawn with this seed;
    /// each rank knows only the counts that it would know in a program.
    std::uint64_t uneven = 0;
    /// The hosts of the ranks; two-level algorithms depend on it.
    Links links{};
    /// A sparse topology: rings follow its order, and trees are those of the hops. Without one,
    /// trees are random.
    Hops hops{};
    /// If not 0, and without hops: rings follow a random order, drawn with this seed.
    std::uint64_t shuffled = 0;
};

/// Ways to spread a world over hosts: in blocks, in turn, on hosts of different sizes, with a rank
/// alone on its host, at random; and all ranks on one host. At most `most`.
std::vector<Links> placements(std::uint32_t world, std::size_t most = 100);

/// The placements that an algorithm is proven for: one unless it has two levels.
std::vector<Links> placements(const Algorithm& algorithm, std::uint32_t world,
                              std::size_t most = 100);

std::string to_text(const Case& c);

/// The requests of all ranks, and the schedules that the ranks build from them.
std::vector<Request> requests(const Case& c);
std::vector<Schedule> schedules(const Case& c, const std::vector<Request>& requests);

/// Runs check() on the case. Returns the error in words, or an empty string.
std::string verdict(const Case& c);

/// Every message of the case that is sent: from whom to whom.
struct Sent {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
};
std::vector<Sent> sent(const std::vector<Schedule>& schedules);

/// Names for gtest: "all_reduce_ring".
std::string full_name(const Algorithm& algorithm);

/// A segment size that divides the chunks of this case into a few pieces.
std::uint64_t some_segment(const Case& c);

}  // namespace nexar::schedule::testing

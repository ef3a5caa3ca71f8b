#include "process/chaos/fencing.hpp"

#include <gtest/gtest.h>

#include "process/chaos/scenario.hpp"

namespace nexar::chaos {

void evict_and_continue(const std::string& link, int times, std::uint64_t seed) {
    const int done = run_scenario({.ranks = 4,
                                   .link = link,
                                   .cycles = times,
                                   .seed = seed,
                                   .only = Fault::Kind::stop,
                                   .hammer = std::chrono::milliseconds(150)});
    EXPECT_EQ(done, times);
}

}  // namespace nexar::chaos

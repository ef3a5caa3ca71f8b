#include <gtest/gtest.h>

#include <cstdlib>

#include "sim/chaos_runs.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

/// NEXAR_TEST_SEED is the first seed, NEXAR_SOAK_RUNS the number of seeds.
TEST(ChaosSoak, keeps_its_promises) {
    const char* const given = std::getenv("NEXAR_SOAK_RUNS");
    expect_promises_kept(test_seed(1), given == nullptr ? 2000 : std::strtoull(given, nullptr, 10));
}

}  // namespace
}  // namespace nexar::testing

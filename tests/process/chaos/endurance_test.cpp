// Faults that no rank may notice, briefly. chaos_soak_tests runs them for hours.

#include "process/chaos/endurance.hpp"

#include <gtest/gtest.h>

#include "support/seed.hpp"

namespace nexar::chaos {
namespace {

TEST(Endurance, restarts_of_the_seed_fail_no_operation) {
    restart_the_seed(span_from("NEXAR_CHAOS_SPAN", std::chrono::seconds(2)),
                     std::chrono::milliseconds(1000));
}

TEST(Endurance, loss_and_load_evict_nobody) {
    load_everything(span_from("NEXAR_CHAOS_SPAN", std::chrono::seconds(3)), 16, test_seed(2121));
}

}  // namespace
}  // namespace nexar::chaos

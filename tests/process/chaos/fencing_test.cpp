// A member that was evicted while it was stopped changes nothing when it continues.

#include "process/chaos/fencing.hpp"

#include <gtest/gtest.h>

#include "support/seed.hpp"

namespace nexar::chaos {
namespace {

TEST(Fencing, evicted_member_changes_nothing_in_shared_memory) {
    evict_and_continue("auto", 3, test_seed(2111));
}

TEST(Fencing, evicted_member_changes_nothing_over_quic) {
    evict_and_continue("quic", 1, test_seed(2112));
}

}  // namespace
}  // namespace nexar::chaos

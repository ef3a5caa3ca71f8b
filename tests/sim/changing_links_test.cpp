// Messages of pairs whose links come, move and break.

#include <gtest/gtest.h>

#include "changing_links.hpp"
#include "support/seed.hpp"
#include "traffic.hpp"

namespace nexar::testing {
namespace {

TEST(ChangingLinks, lose_and_repeat_no_message) {
    const std::uint64_t first = test_seed(1);
    int broken = 0;
    int preferred = 0;
    for (std::uint64_t seed = first; seed < first + 40; ++seed) {
        SCOPED_TRACE(seed);
        Traffic<ChangingLinks> traffic(seed, 2 + seed % 2);
        ASSERT_NO_FATAL_FAILURE(traffic.run(600));
        broken += traffic.cluster().broken();
        preferred += traffic.cluster().preferred();
    }
    EXPECT_GT(broken, 100);
    EXPECT_GT(preferred, 1000);
}

}  // namespace
}  // namespace nexar::testing

#include "link/common/even_share.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "support/seed.hpp"

namespace nexar::link {
namespace {

TEST(EvenShare, begins_with_the_traffic_of_the_link) {
    EvenShare share;
    EXPECT_FALSE(share.forwarded_next());
    share.wrote_own(1);
    EXPECT_TRUE(share.forwarded_next());
    share.wrote_forwarded(1);
    EXPECT_FALSE(share.forwarded_next());
}

TEST(EvenShare, gives_each_side_half_whatever_the_sizes_of_its_pieces) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        Random random(test_seed(seed));
        EvenShare share;
        const std::size_t most_own = 1 + random.below(65'000);
        const std::size_t most_forwarded = 1 + random.below(65'000);
        std::size_t own = 0;
        std::size_t forwarded = 0;
        while (own + forwarded < 50'000'000) {
            if (share.forwarded_next()) {
                const std::size_t bytes = 1 + random.below(most_forwarded);
                share.wrote_forwarded(bytes);
                forwarded += bytes;
            } else {
                const std::size_t bytes = 1 + random.below(most_own);
                share.wrote_own(bytes);
                own += bytes;
            }
        }
        EXPECT_LE(own > forwarded ? own - forwarded : forwarded - own, 65'000U) << seed;
    }
}

TEST(EvenShare, a_side_that_had_nothing_to_write_catches_up_with_nothing) {
    EvenShare share;
    for (int i = 0; i < 100; ++i) share.wrote_alone();
    share.wrote_own(10);
    share.wrote_alone();
    EXPECT_FALSE(share.forwarded_next());
}

TEST(EvenShare, a_side_that_could_not_write_catches_up_with_little) {
    EvenShare share;
    for (int i = 0; i < 1000; ++i) share.wrote_own(10'000);
    share.wrote_forwarded(static_cast<std::size_t>(EvenShare::kMostLead));
    EXPECT_FALSE(share.forwarded_next());
    for (int i = 0; i < 1000; ++i) share.wrote_forwarded(10'000);
    share.wrote_own(static_cast<std::size_t>(EvenShare::kMostLead));
    EXPECT_FALSE(share.forwarded_next());
    share.wrote_own(1);
    EXPECT_TRUE(share.forwarded_next());
}

}  // namespace
}  // namespace nexar::link

#include "link/sim/link.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim_pair.hpp"
#include "support/seed.hpp"

namespace nexar::testing {

namespace {

using namespace std::chrono_literals;
using port::Lane;
using port::SendOutcome;

TEST(SimLink, comes_up_on_both_sides_and_knows_who_dialed) {
    SimPair pair;
    ASSERT_TRUE(pair.connect());
    EXPECT_TRUE(pair.client().dialed());
    EXPECT_FALSE(pair.server().dialed());
    EXPECT_EQ(pair.client().link().peer(), pair.b.identity());
    EXPECT_EQ(pair.server().link().peer(), pair.a.identity());
}

// Everything at once, in weather that cuts, delays and reorders: every byte arrives, in order.
TEST(SimLink, carries_lanes_streams_and_datagrams_through_any_weather) {
    const std::uint64_t first = test_seed(1);
    for (std::uint64_t seed = first; seed < first + 200; ++seed) {
        SCOPED_TRACE(seed);
        sim::FabricOptions options;
        options.weather = {.delay = 50us, .jitter = 5ms, .largest_piece = 3000, .cuts = 0.6};
        SimPair pair(seed, options);
        ASSERT_TRUE(pair.connect());
        Random random(seed);
        std::array<std::vector<std::byte>, port::kLanes> written;
        std::vector<std::vector<std::byte>> sent;
        for (int i = 0; i < 40; ++i) {
            LinkEnd& from = pair.client();
            const auto bytes = pattern(seed * 1000 + static_cast<std::uint64_t>(i),
                                       random.below(i % 4 == 0 ? 200'000 : 500));
            if (i % 4 == 0) {
                const auto prefix = pattern(7, 13);
                from.send(bytes, {.prefix = prefix}, 1 + random.below(5));
                auto& whole = sent.emplace_back(prefix);
                whole.insert(whole.end(), bytes.begin(), bytes.end());
            } else {
                const auto lane = static_cast<Lane>(random.below(port::kLanes));
                ASSERT_TRUE(from.write(lane, bytes));
                auto& all = written[static_cast<std::size_t>(lane)];
                all.insert(all.end(), bytes.begin(), bytes.end());
            }
            if (random.chance(0.3)) pair.world.run_for(1ms);
        }
        ASSERT_TRUE(pair.run_until([&] {
            return pair.client().all_released() && pair.server().finished() == sent.size();
        }));
        pair.client().link().close("done");
        ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }));
        for (std::size_t i = 0; i < port::kLanes; ++i) {
            EXPECT_EQ(pair.server().lane(static_cast<Lane>(i)).bytes, written[i]);
        }
        std::vector<std::vector<std::byte>> received;
        for (std::size_t i = 0; i < sent.size(); ++i) {
            received.push_back(pair.server().incoming(i).sink.bytes);
        }
        EXPECT_TRUE(std::ranges::is_permutation(received, sent));
    }
}

}  // namespace

}  // namespace nexar::testing

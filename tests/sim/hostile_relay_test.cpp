// Five nodes in a ring, of which one treats the packets that it should relay as it likes. Ranks 0
// and 2 communicate through rank 1, which is hostile, or the other way round through ranks 4 and 3.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nexar/log.hpp>
#include <string>

#include "sim/hostile_relay.hpp"
#include "sim/ring_cluster.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kHostile = 1;
constexpr std::uint32_t kOne = 0;
constexpr std::uint32_t kOther = 2;

struct Treatment {
    Hostility hostility{};
    /// Which the pair may need for all messages of a test.
    Duration most = 5s;
};

class HostileRing : public ::testing::TestWithParam<Treatment> {
protected:
    HostileRing() { set_log_level(LogLevel::off); }

    /// Messages of different sizes in both directions.
    void send_messages() {
        constexpr int kMessages = 24;
        for (std::size_t i = 0; i < kMessages; ++i) {
            const std::size_t bytes = 1 + i * i * i * 7;
            cluster_.send(kOne, kOther, bytes);
            cluster_.send(kOther, kOne, bytes + 13);
        }
    }
    /// Exchanges messages, and prints how long it took.
    void expect_messages(const char* when) {
        const TimePoint began = cluster_.world().now();
        send_messages();
        const bool ended = cluster_.run_until_ended(GetParam().most);
        const auto took = cluster_.world().now() - began;
        std::printf("%s %s: %.3f s, %zu of %zu packets mistreated\n",
                    std::string(name(GetParam().hostility)).c_str(), when,
                    std::chrono::duration<double>(took).count(), relay_->mistreated(),
                    relay_->taken());
        EXPECT_TRUE(ended) << "the messages take too long";
        EXPECT_TRUE(cluster_.all_arrived());
    }
    void form() {
        ASSERT_TRUE(cluster_.form());
        relay_ = std::make_unique<HostileRelay>(cluster_, kHostile, seed_);
    }

    std::uint64_t seed_ = test_seed(41);
    RingCluster cluster_{seed_, 5};
    std::unique_ptr<HostileRelay> relay_{};
};

TEST_P(HostileRing, delays_a_pair_that_opens_its_tunnel_and_nothing_else) {
    ASSERT_NO_FATAL_FAILURE(form());
    relay_->turn_to(GetParam().hostility);
    expect_messages("from the beginning");
    EXPECT_GT(relay_->mistreated(), 0U);
    cluster_.run_until([] { return false; }, 2s);
    EXPECT_TRUE(cluster_.is_whole());
}

TEST_P(HostileRing, delays_a_pair_that_has_a_tunnel_and_nothing_else) {
    ASSERT_NO_FATAL_FAILURE(form());
    const Exchange& first = cluster_.send(kOne, kOther, 1000);
    ASSERT_TRUE(cluster_.run_until([&] { return first.arrived(); }, 5s));
    ASSERT_GT(relay_->taken(), 0U) << "the tunnel leads through the hostile relay";
    relay_->turn_to(GetParam().hostility);
    expect_messages("later");
    EXPECT_GT(relay_->mistreated(), 0U);
    cluster_.run_until([] { return false; }, 2s);
    EXPECT_TRUE(cluster_.is_whole());
}

INSTANTIATE_TEST_SUITE_P(Relay, HostileRing,
                         ::testing::Values(Treatment{.hostility = Hostility::drops_all},
                                           Treatment{.hostility = Hostility::drops_half},
                                           Treatment{.hostility = Hostility::reorders},
                                           Treatment{.hostility = Hostility::repeats},
                                           Treatment{.hostility = Hostility::alters_some},
                                           Treatment{.hostility = Hostility::alters_all},
                                           Treatment{.hostility = Hostility::alters_choices},
                                           Treatment{.hostility = Hostility::replays},
                                           Treatment{.hostility = Hostility::everything}),
                         [](const auto& one) { return std::string(name(one.param.hostility)); });

}  // namespace
}  // namespace nexar::testing

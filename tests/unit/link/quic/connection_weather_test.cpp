#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "link/quic/connection.hpp"
#include "support/quic_pair.hpp"
#include "support/seed.hpp"
#include "unit/base/log_capture.hpp"

// Everything at once, over networks that lose, duplicate, reorder and corrupt.
namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::sim::DatagramWeather;
using nexar::testing::AskedSource;
using nexar::testing::LinkEnd;
using nexar::testing::PairOptions;
using nexar::testing::pattern;
using nexar::testing::QuicPair;
using port::Lane;
using port::SendOutcome;

struct Climate {
    std::string name;
    DatagramWeather weather;
    Protection protection = Protection::full;
};

const std::vector<Climate>& climates() {
    static const std::vector<Climate> all = {
        {"fair", {}},
        {"loss_2", {.delay = 1ms, .loss = 0.02}},
        {"loss_20", {.delay = 1ms, .loss = 0.2}},
        {"reordered", {.delay = 1ms, .jitter = 3ms}},
        {"doubled", {.delay = 1ms, .jitter = 1ms, .duplicate = 0.5}},
        {"corrupt_5", {.delay = 1ms, .corrupt = 0.05}},
        {"corrupt_5_bare", {.delay = 1ms, .corrupt = 0.05}, Protection::none},
        {"storm",
         {.delay = 2ms,
          .jitter = 4ms,
          .loss = 0.1,
          .duplicate = 0.1,
          .corrupt = 0.05,
          .mtu = 1452}},
        {"storm_bare",
         {.delay = 2ms, .jitter = 4ms, .loss = 0.1, .duplicate = 0.1, .corrupt = 0.05, .mtu = 1452},
         Protection::none},
    };
    return all;
}

class InWeather : public ::testing::TestWithParam<Climate> {
protected:
    PairOptions options(std::uint64_t seed) const {
        PairOptions chosen;
        chosen.seed = seed;
        chosen.weather = GetParam().weather;
        chosen.client.protection = GetParam().protection;
        chosen.server.protection = GetParam().protection;
        return chosen;
    }

    LogCapture log_;  // the warning about missing protection
};

INSTANTIATE_TEST_SUITE_P(Climates, InWeather, ::testing::ValuesIn(climates()),
                         [](const auto& climate) { return climate.param.name; });

/// Sends a random mix in both directions, and records what must arrive.
class Traffic {
public:
    Traffic(LinkEnd& from, LinkEnd& to, std::uint64_t seed)
        : from_(&from), to_(&to), random_(seed) {}

    void send_some() {
        for (std::size_t lane = 0; lane < port::kLanes; ++lane) {
            const auto message = pattern(random_.next(), 1 + random_.below(6000));
            if (from_->write(static_cast<Lane>(lane), message)) {
                lanes_[lane].insert(lanes_[lane].end(), message.begin(), message.end());
            }
        }
        const std::uint64_t seed = random_.next();
        // Streams are identified by their first bytes, because there is no order between them.
        auto content = pattern(seed, 8 + random_.below(120'000));
        const auto priority = static_cast<port::Priority>(random_.below(port::kPriorities));
        if (random_.chance(0.3)) {
            asked_.push_back(std::make_unique<AskedSource>(content));
            from_->send_from(*asked_.back(), {.priority = priority});
        } else {
            from_->send(content, {.priority = priority}, 1 + random_.below(20));
        }
        const std::uint64_t name = name_of(content);
        streams_.emplace(name, std::move(content));
    }

    bool delivered() const {
        for (std::size_t lane = 0; lane < port::kLanes; ++lane) {
            if (to_->lane(static_cast<Lane>(lane)).bytes.size() != lanes_[lane].size())
                return false;
        }
        return from_->all_released() && to_->finished() == streams_.size();
    }

    void check() const {
        for (std::size_t lane = 0; lane < port::kLanes; ++lane) {
            EXPECT_EQ(to_->lane(static_cast<Lane>(lane)).bytes, lanes_[lane]) << lane;
        }
        ASSERT_EQ(to_->opened().size(), streams_.size());
        for (std::size_t i = 0; i < to_->opened().size(); ++i) {
            const auto& got = to_->incoming(i).sink.bytes;
            ASSERT_GE(got.size(), 8U);
            const auto sent = streams_.find(name_of(got));
            ASSERT_NE(sent, streams_.end());
            EXPECT_TRUE(got == sent->second);
        }
    }

private:
    static std::uint64_t name_of(const std::vector<std::byte>& content) {
        std::uint64_t name = 0;
        std::memcpy(&name, content.data(), sizeof name);
        return name;
    }

    LinkEnd* from_;
    LinkEnd* to_;
    Random random_;
    std::array<std::vector<std::byte>, port::kLanes> lanes_;
    std::vector<std::unique_ptr<AskedSource>> asked_;
    std::map<std::uint64_t, std::vector<std::byte>> streams_;
};

TEST_P(InWeather, everything_arrives_once_in_order_and_unchanged) {
    const std::uint64_t first = test_seed(20'261'115);
    for (std::uint64_t seed = first; seed < first + 4; ++seed) {
        QuicPair pair(options(seed));
        ASSERT_TRUE(pair.connect(30s)) << seed;
        Traffic there(pair.client(), pair.server(), seed);
        Traffic back(pair.server(), pair.client(), seed + 1000);
        for (int round = 0; round < 12; ++round) {
            there.send_some();
            back.send_some();
            pair.world.run_for(
                Duration(static_cast<std::int64_t>(pair.world.random().below(8'000'000))));
        }
        ASSERT_TRUE(pair.run_until([&] { return there.delivered() && back.delivered(); }, 120s))
            << seed << (pair.client().down() ? pair.client().down()->what() : "")
            << (pair.server().down() ? pair.server().down()->what() : "");
        there.check();
        back.check();
        EXPECT_EQ(pair.client().aborted() + pair.server().aborted(), 0U);
    }
}

TEST_P(InWeather, streams_cancelled_at_any_moment_end_once_on_both_sides) {
    const std::uint64_t first = test_seed(77);
    for (std::uint64_t seed = first; seed < first + 3; ++seed) {
        QuicPair pair(options(seed));
        Random random(seed);
        ASSERT_TRUE(pair.connect(30s)) << seed;
        pair.server().on_opened = [&](LinkEnd& end, port::StreamId stream) {
            const auto fate = random.below(4);
            end.incoming(stream).sink.allowance = fate == 0 ? 5000 : ~std::uint64_t{0};
            if (fate == 1) end.link().refuse(stream);
            if (fate != 1) end.receive(stream);
        };
        std::vector<port::StreamId> sent;
        for (int round = 0; round < 40; ++round) {
            sent.push_back(pair.client().send(pattern(random.next(), random.below(80'000))));
            pair.world.run_for(Duration(static_cast<std::int64_t>(random.below(3'000'000))));
            if (random.chance(0.5)) pair.client().link().cancel(sent[random.below(sent.size())]);
            if (random.chance(0.2) && !pair.server().opened().empty()) {
                const auto& opened = pair.server().opened();
                pair.server().link().refuse(opened[random.below(opened.size())]);
            }
        }
        pair.world.run_for(5s);
        for (const port::StreamId stream : pair.server().opened()) {
            pair.server().incoming(stream).sink.allowance = ~std::uint64_t{0};
            pair.server().link().wake_sink(stream);
        }
        ASSERT_TRUE(pair.run_until([&] {
            return pair.client().all_released() &&
                   pair.server().finished() + pair.server().aborted() ==
                       pair.server().opened().size();
        })) << seed;
        EXPECT_TRUE(pair.client().is_up() && pair.server().is_up());
        EXPECT_EQ(pair.server().connection().statistics().parked, 0U);
    }
}

TEST_P(InWeather, a_cut_link_releases_everything_before_down) {
    const std::uint64_t first = test_seed(5);
    for (std::uint64_t seed = first; seed < first + 3; ++seed) {
        PairOptions chosen = options(seed);
        chosen.client.idle_timeout = chosen.server.idle_timeout = 3s;
        QuicPair pair(chosen);
        ASSERT_TRUE(pair.connect(30s)) << seed;
        Traffic there(pair.client(), pair.server(), seed);
        Traffic back(pair.server(), pair.client(), seed + 1);
        for (std::uint64_t round = 0; round < 4 + seed - first; ++round) {
            there.send_some();
            back.send_some();
            pair.world.run_for(2ms);
        }
        pair.net.weather.cut = true;
        there.send_some();
        ASSERT_TRUE(
            pair.run_until([&] { return pair.client().down() && pair.server().down(); }, 20s));
        EXPECT_EQ(pair.client().down()->code(), Errc::timed_out);
        EXPECT_TRUE(pair.client().all_released());
        EXPECT_TRUE(pair.server().all_released());
        pair.world.run_for(30s);
        EXPECT_EQ(pair.client_side.endpoint().connections(), 0U);
        EXPECT_EQ(pair.server_side.endpoint().connections(), 0U);
    }
}

TEST(ConnectionWeather, handshakes_complete_with_30_percent_loss_in_both_directions) {
    const std::uint64_t first = test_seed(400);
    for (std::uint64_t seed = first; seed < first + 50; ++seed) {
        QuicPair pair({.seed = seed, .weather = {.delay = 1ms, .loss = 0.3}});
        EXPECT_TRUE(pair.connect(10s)) << seed;
    }
}

TEST(ConnectionWeather, a_link_outlives_partitions_shorter_than_the_idle_timeout) {
    QuicPair pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    const auto content = pattern(1, 100'000'000);
    AskedSource source(content);
    pair.client().send_from(source);
    for (int i = 0; i < 4; ++i) {
        pair.world.run_for(5ms);
        pair.net.weather.cut = true;
        pair.world.run_for(5s);
        pair.net.weather.cut = false;
        pair.world.run_for(2s);
    }
    ASSERT_TRUE(pair.run_until([&] { return pair.client().all_released(); }, 60s));
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == content);
}

TEST(ConnectionWeather, one_way_silence_ends_the_link_on_both_sides) {
    QuicPair pair({.client = {.idle_timeout = 3s, .keep_alive = 500ms},
                   .server = {.idle_timeout = 3s, .keep_alive = 500ms}});
    ASSERT_TRUE(pair.connect());
    pair.net.set_weather_to(pair.server_side.host(), {.cut = true});
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down() && pair.server().down(); }, 10s));
    EXPECT_EQ(pair.server().down()->code(), Errc::timed_out);
}

}  // namespace
}  // namespace nexar::quic

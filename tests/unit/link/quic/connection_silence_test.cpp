#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "link/quic/connection.hpp"
#include "support/quic_pair.hpp"
#include "support/seed.hpp"

// How long it takes a link to notice that its peer has died or become unreachable.
namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using nexar::sim::Datagram;
using nexar::testing::bytes_of;
using nexar::testing::LinkEnd;
using nexar::testing::pattern;
using nexar::testing::QuicPair;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A pair in which the server's host can refuse datagrams, as after the death of the process.
class Refusing : public QuicPair {
public:
    explicit Refusing(const nexar::testing::PairOptions& options = {}) : QuicPair(options) {
        net.tap = [this](Datagram& datagram) {
            if (datagram.to != server_side.host().address()) return !refuses;
            last_ = datagram.bytes;
            ++sent;
            if (refuses) quotes_.push_back(datagram.bytes);
            return !refuses;
        };
    }

    /// Runs, and reports refusals to the client as the kernel would.
    bool run(const std::function<bool()>& done, Duration at_most) {
        const TimePoint end = world.now() + at_most;
        while (!done() && world.now() < end) {
            world.run_for(1ms);
            for (const auto& quote : std::exchange(quotes_, {})) refuse(quote);
        }
        return done();
    }
    void refuse(std::span<const std::byte> quoted) {
        client_side.endpoint().refused(world.now(), server_side.host().address(),
                                       quoted.first(std::min<std::size_t>(quoted.size(), 64)));
    }
    std::span<const std::byte> last() const { return last_; }

    bool refuses = false;
    std::size_t sent = 0;

private:
    std::vector<std::vector<std::byte>> quotes_;
    std::vector<std::byte> last_;
};

TEST(ConnectionSilence, a_vanished_idle_peer_is_noticed_within_the_idle_timeout) {
    const std::uint64_t first = test_seed(510);
    for (std::uint64_t seed = first; seed < first + 20; ++seed) {
        QuicPair pair({.seed = seed, .weather = {.delay = 1ms}});
        ASSERT_TRUE(pair.connect());
        // At any moment between two keep-alives.
        pair.world.run_for(20s + pair.world.random().below(10'000) * 1ms);
        ASSERT_TRUE(pair.client().is_up()) << seed;
        pair.net.weather.cut = true;
        const TimePoint before = pair.world.now();
        ASSERT_TRUE(
            pair.run_until([&] { return pair.client().down() && pair.server().down(); }, 60s));
        EXPECT_LE(pair.world.now() - before, LinkOptions{}.idle_timeout) << seed;
        EXPECT_EQ(pair.client().down()->code(), Errc::timed_out);
    }
}

TEST(ConnectionSilence, the_smaller_idle_timeout_of_both_sides_counts) {
    QuicPair pair({.client = {.idle_timeout = 30s, .keep_alive = 1s},
                   .server = {.idle_timeout = 4s, .keep_alive = 1s}});
    ASSERT_TRUE(pair.connect());
    pair.world.run_for(10s);
    ASSERT_TRUE(pair.client().is_up());
    pair.net.weather.cut = true;
    const TimePoint before = pair.world.now();
    ASSERT_TRUE(pair.run_until([&] { return pair.client().down().has_value(); }, 60s));
    EXPECT_LE(pair.world.now() - before, 4s);
    EXPECT_THAT(pair.client().down()->cause(), HasSubstr("for 4 s"));
}

TEST(ConnectionSilence, an_idle_link_outlives_a_partition_that_is_a_little_shorter) {
    const std::uint64_t first = test_seed(540);
    for (std::uint64_t seed = first; seed < first + 20; ++seed) {
        QuicPair pair({.seed = seed});
        ASSERT_TRUE(pair.connect());
        pair.world.run_for(10s + pair.world.random().below(10'000) * 1ms);
        pair.net.weather.cut = true;
        pair.world.run_for(22s);
        pair.net.weather.cut = false;
        pair.world.run_for(30s);
        EXPECT_TRUE(pair.client().is_up()) << seed;
        EXPECT_TRUE(pair.server().is_up()) << seed;
    }
}

TEST(ConnectionSilence, reports_a_stall_while_the_peer_is_heard_and_acknowledges_nothing) {
    QuicPair pair({.seed = test_seed(560)});
    ASSERT_TRUE(pair.connect());
    bool one_way = true;
    pair.net.tap = [&](const Datagram& datagram) {
        return !one_way || datagram.to != pair.server_side.host().address();
    };
    ASSERT_TRUE(pair.client().write(port::Lane::eager, bytes_of("are you there?")));
    const auto server_speaks = [&](Duration span) {
        for (const TimePoint end = pair.world.now() + span; pair.world.now() < end;) {
            EXPECT_TRUE(pair.server().link().send_datagram(bytes_of("I am")));
            pair.world.run_for(100ms);
        }
    };
    server_speaks(1s);
    EXPECT_THAT(pair.client().stalls, IsEmpty()) << "a short pause is no stall";
    server_speaks(2s);
    EXPECT_THAT(pair.client().stalls, ElementsAre(true));
    one_way = false;
    server_speaks(5s);
    EXPECT_THAT(pair.client().stalls, ElementsAre(true, false));
    EXPECT_TRUE(pair.client().is_up());
}

/// A transfer in either direction while the path is cut for so long that probe timers have doubled
/// to seconds. The other side speaks all the time, as members do.
class AfterACut : public ::testing::Test {
protected:
    AfterACut() {
        EXPECT_TRUE(pair_.connect());
        pair_.world.run_for(1s);
    }
    void cut_during_transfer(LinkEnd& sender, LinkEnd& receiver) {
        sender.send(content_);
        pair_.world.run_for(2ms);
        EXPECT_FALSE(has_all(receiver));
        pair_.net.weather.cut = true;
        run_for(8s);
        pair_.net.weather.cut = false;
    }
    void run_for(Duration span) {
        for (const TimePoint end = pair_.world.now() + span; pair_.world.now() < end;) {
            pair_.client().link().send_datagram(bytes_of("I am here"));
            pair_.server().link().send_datagram(bytes_of("I am here"));
            pair_.world.run_for(100ms);
        }
    }

    bool has_all(LinkEnd& receiver) const {
        return receiver.opened().size() == 1 && receiver.incoming(0).sink.bytes == content_;
    }

    const std::vector<std::byte> content_ = pattern(7, 4'000'000);
    QuicPair pair_{{.seed = test_seed(570), .weather = {.delay = 200us, .mtu = 1452}}};
};

TEST_F(AfterACut, the_dialer_goes_on_within_half_a_second) {
    cut_during_transfer(pair_.client(), pair_.server());
    run_for(500ms);
    EXPECT_TRUE(has_all(pair_.server()));
}

TEST_F(AfterACut, the_acceptor_goes_on_within_half_a_second) {
    cut_during_transfer(pair_.server(), pair_.client());
    run_for(500ms);
    EXPECT_TRUE(has_all(pair_.client()));
}

TEST(ConnectionSilence, looking_again_and_again_loses_nothing) {
    QuicPair pair({.seed = test_seed(575), .weather = {.delay = 300us, .mtu = 1452}});
    ASSERT_TRUE(pair.connect());
    const auto content = pattern(9, 6'000'000);
    pair.client().send(content);
    for (int i = 0; i < 200; ++i) {
        pair.client().link().refresh();
        if (i % 3 == 0) pair.server().link().refresh();
        pair.world.run_for(5ms);
    }
    ASSERT_TRUE(pair.run_until([&] { return pair.server().finished() == 1; }, 10s));
    EXPECT_TRUE(pair.client().is_up());
    EXPECT_TRUE(pair.server().incoming(0).sink.bytes == content);
}

TEST(ConnectionSilence, refused_packets_end_a_link_within_a_second) {
    Refusing pair;
    ASSERT_TRUE(pair.connect());
    pair.run([] { return false; }, 3s);
    pair.refuses = true;
    const TimePoint before = pair.world.now();
    ASSERT_TRUE(pair.client().write(port::Lane::eager, bytes_of("are you there?")));
    ASSERT_TRUE(pair.run([&] { return pair.client().down().has_value(); }, 10s));
    EXPECT_LT(pair.world.now() - before, 1s);
    EXPECT_GE(pair.world.now() - before, Refusals::kPatience);
    EXPECT_EQ(pair.client().down()->code(), Errc::timed_out);
    EXPECT_THAT(pair.client().down()->cause(), HasSubstr("no process listens at 10.0.0.2:7400"));
}

TEST(ConnectionSilence, refused_bulk_ends_a_link_within_a_second) {
    Refusing pair({.weather = {.delay = 1ms, .mtu = 1452}});
    ASSERT_TRUE(pair.connect());
    pair.client().send(pattern(3, 40'000'000));
    pair.run([] { return false; }, 20ms);
    ASSERT_TRUE(pair.client().is_up());
    pair.refuses = true;
    const TimePoint before = pair.world.now();
    ASSERT_TRUE(pair.run([&] { return pair.client().down().has_value(); }, 10s));
    EXPECT_LT(pair.world.now() - before, 1s);
}

TEST(ConnectionSilence, an_idle_link_notices_a_refusal_with_its_next_keep_alive) {
    Refusing pair;
    ASSERT_TRUE(pair.connect());
    pair.run([] { return false; }, 20s);
    pair.refuses = true;
    const TimePoint before = pair.world.now();
    ASSERT_TRUE(pair.run([&] { return pair.client().down().has_value(); }, 60s));
    EXPECT_LT(pair.world.now() - before, LinkOptions{}.keep_alive + 1s);
}

TEST(ConnectionSilence, a_dialer_that_is_refused_gives_up_within_a_second) {
    Refusing pair;
    pair.refuses = true;
    const TimePoint before = pair.world.now();
    const auto& end = pair.dial();
    ASSERT_TRUE(pair.run([&] { return end.down().has_value(); }, 20s));
    EXPECT_LT(pair.world.now() - before, 1s);
    EXPECT_EQ(end.down()->code(), Errc::timed_out);
}

TEST(ConnectionSilence, a_live_peer_keeps_its_link_under_forged_refusals) {
    // The forger sees every packet, so its quotes are right.
    Refusing pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    for (int i = 0; i < 5000; ++i) {
        if (i % 7 == 0) {
            ASSERT_TRUE(pair.client().write(port::Lane::eager, bytes_of("hello")));
        }
        pair.refuse(pair.last());
        pair.run([] { return false; }, 2ms);
        ASSERT_TRUE(pair.client().is_up()) << i << pair.client().down()->what();
    }
}

TEST(ConnectionSilence, refusals_that_quote_other_packets_are_ignored) {
    Refusing pair;
    ASSERT_TRUE(pair.connect());
    pair.run([] { return false; }, 2s);
    auto forged = std::vector(pair.last().begin(), pair.last().end());
    forged[3] ^= std::byte{1};                                       // in the connection id
    pair.net.pause(pair.server_side.host(), pair.world.now() + 2s);  // so nothing is answered
    const std::size_t before = pair.sent;
    for (int i = 0; i < 150; ++i) {
        pair.refuse(forged);
        pair.run([] { return false; }, 10ms);
    }
    EXPECT_EQ(pair.sent, before) << "the client sends no probe";
    EXPECT_EQ(pair.client().refusals, 0U) << "and its owner hears nothing";
    EXPECT_TRUE(pair.client().is_up());
}

TEST(ConnectionSilence, refusals_without_a_quote_do_not_end_the_link_of_a_peer_that_pauses) {
    Refusing pair;
    ASSERT_TRUE(pair.connect());
    pair.run([] { return false; }, 2s);
    pair.net.pause(pair.server_side.host(), pair.world.now() + 3s);
    for (int i = 0; i < 400; ++i) {
        pair.refuse({});
        pair.run([] { return false; }, 10ms);
        ASSERT_TRUE(pair.client().is_up()) << pair.client().down()->what();
    }
}

TEST(ConnectionSilence, a_link_that_is_closed_ends_soon_if_its_peer_is_dead) {
    for (const bool with_stream : {false, true}) {
        Refusing pair;
        ASSERT_TRUE(pair.connect());
        pair.run([] { return false; }, 3s);
        pair.refuses = true;
        if (with_stream) pair.client().send(pattern(3, 1'000'000));
        const TimePoint before = pair.world.now();
        pair.client().link().close("bye");
        ASSERT_TRUE(pair.run([&] { return pair.client().down().has_value(); }, 10s));
        EXPECT_LT(pair.world.now() - before, 100ms);
        EXPECT_EQ(pair.client().down()->code(), Errc::link_closed);
        EXPECT_THAT(pair.client().down()->cause(), HasSubstr("no process listens at"));
    }
}

TEST(ConnectionSilence, forged_refusals_do_not_cut_off_what_a_closed_link_delivers) {
    Refusing pair({.weather = {.delay = 1ms}});
    ASSERT_TRUE(pair.connect());
    pair.server().on_opened = [](nexar::testing::LinkEnd& end, port::StreamId stream) {
        end.incoming(stream).sink.allowance = 100'000;
        end.receive(stream);
    };
    const auto stream = pair.client().send(pattern(3, 6'000'000));
    pair.run([&] { return pair.server().opened().size() == 1; }, 1s);
    pair.client().link().close("after this");
    for (int i = 0; i < 500; ++i) {
        pair.refuse(pair.last());
        pair.run([] { return false; }, 2ms);
        ASSERT_FALSE(pair.client().down()) << i << pair.client().down()->what();
    }
    pair.server().incoming(0).sink.allowance = nexar::testing::CollectingSink::kUnlimited;
    pair.server().link().wake_sink(pair.server().opened()[0]);
    ASSERT_TRUE(pair.run([&] { return pair.client().down().has_value(); }, 1s));
    EXPECT_EQ(pair.client().outcome(stream), port::SendOutcome::delivered);
}

TEST(ConnectionSilence, the_owner_hears_of_refusals_at_most_every_10_ms) {
    for (const bool quoted : {true, false}) {
        Refusing pair({.weather = {.delay = 1ms}});
        ASSERT_TRUE(pair.connect());
        pair.run([] { return false; }, 2s);
        for (int i = 0; i < 1'000; ++i) {
            pair.refuse(quoted ? pair.last() : std::span<const std::byte>());
            pair.run([] { return false; }, 1ms);
        }
        EXPECT_GE(pair.client().refusals, 90U);
        EXPECT_LE(pair.client().refusals, 101U);
        EXPECT_TRUE(pair.client().is_up());
    }
}

TEST(ConnectionSilence, a_link_survives_a_brief_refusal) {
    Refusing pair;
    ASSERT_TRUE(pair.connect());
    pair.run([] { return false; }, 2s);
    for (int i = 0; i < 10; ++i) {
        pair.refuses = true;
        ASSERT_TRUE(pair.client().write(port::Lane::eager, bytes_of("one moment")));
        pair.run([] { return false; }, 300ms);
        pair.refuses = false;
        pair.run([] { return false; }, 700ms);
        ASSERT_TRUE(pair.client().is_up()) << i << pair.client().down()->what();
    }
    EXPECT_EQ(pair.server().lane(port::Lane::eager).bytes.size(), 100U);
}

}  // namespace
}  // namespace nexar::quic

// Packets that the host of a dead process refuses.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "link/common/farewell.hpp"
#include "process/quic/wire.hpp"
#include "support/child_process.hpp"

namespace nexar::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class QuicRefused : public ::testing::TestWithParam<bool> {
protected:
    QuicRefused()
        : pool_(PoolProfile::training()),
          client_(GetParam() ? Address::any(true) : loopback(), pool_,
                  node_options(cluster_, 1, quiet())) {
        driver_.add(client_);
        client_.on_event = [this](const port::LinkEvent& event) {
            if (!std::holds_alternative<port::PeerRefused>(event.what)) return;
            ++refusals_[event.link.value()];
            refused_at_ = driver_.now();
        };
    }

    static quic::LinkOptions quiet() {
        quic::LinkOptions link = ethernet_link();
        link.keep_alive = seconds(60);
        return link;
    }
    std::unique_ptr<ChildProcess> serve(std::uint64_t node, Address& address) {
        auto child = std::make_unique<ChildProcess>([&](Channel& channel) {
            BufferPool pool(PoolProfile::training());
            Station server(loopback(GetParam()), pool, node_options(cluster_, node, quiet()));
            channel.say(server.address().text());
            LinkDriver driver;
            driver.add(server);
            driver.run_for(std::chrono::minutes(5));
        });
        const auto said = child->channel().hear(patience(seconds(20)));
        if (!said) throw Error(Errc::timed_out, "the server did not start");
        address = Address::parse(*said).value();
        return child;
    }
    port::LinkId connect(const Address& address) {
        const auto link = client_.dial(address, {.cluster = cluster_.id(), .node = {}});
        if (!driver_.run_until([&] { return client_.story(link).came_up; },
                               patience(seconds(20)))) {
            throw Error(Errc::timed_out, driver_.describe());
        }
        return link;
    }

    TestCluster cluster_;
    BufferPool pool_;
    Station client_;
    LinkDriver driver_;
    std::map<std::uint64_t, std::size_t> refusals_;
    TimePoint refused_at_{};
};

INSTANTIATE_TEST_SUITE_P(families, QuicRefused, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "v6" : "v4"; });

// A busy machine may delay every round a little and some of them a lot, so only the shortest one is
// compared with a time. If a timer reported the refusal, every round would take longer.
TEST_P(QuicRefused, a_datagram_to_a_killed_process_is_reported_within_milliseconds) {
    Duration shortest = Duration::max();
    for (int round = 0; round < 10; ++round) {
        Address address;
        auto server = serve(2, address);
        const port::LinkId link = connect(address);
        driver_.run_for(milliseconds(20));
        server->kill();
        ASSERT_EQ(refusals_[link.value()], 0U);
        const TimePoint sent = driver_.now();
        ASSERT_TRUE(client_.story(link).link->send_datagram(std::vector<std::byte>(100)));
        ASSERT_TRUE(
            driver_.run_until([&] { return refusals_[link.value()] != 0; }, patience(seconds(20))));
        shortest = std::min(shortest, refused_at_ - sent);
        EXPECT_FALSE(client_.story(link).down) << "a refusal is only a hint";
        client_.story(link).link->drop("next");
        ASSERT_TRUE(driver_.run_until([&] { return client_.story(link).down.has_value(); },
                                      patience(seconds(20))));
    }
    fmt::print("shortest time from a datagram to its refusal: {} us\n", shortest.count() / 1000);
    EXPECT_LT(shortest, milliseconds(10));
}

TEST_P(QuicRefused, a_link_to_a_killed_process_closes_without_waiting_for_its_farewell) {
    Duration shortest = Duration::max();
    for (int round = 0; round < 5; ++round) {
        Address address;
        auto server = serve(2, address);
        const port::LinkId link = connect(address);
        driver_.run_for(milliseconds(20));
        server->kill();
        const TimePoint begin = driver_.now();
        client_.story(link).link->close("bye");
        ASSERT_TRUE(driver_.run_until([&] { return client_.story(link).down.has_value(); },
                                      patience(seconds(20))));
        shortest = std::min(shortest, client_.story(link).down_at - begin);
        EXPECT_EQ(client_.story(link).down->code(), Errc::link_closed);
        EXPECT_THAT(client_.story(link).down->cause(), HasSubstr("no process listens at"))
            << "the refusals ended it, not the end of the farewell";
    }
    fmt::print("shortest time to close a link to a killed process: {} us\n",
               shortest.count() / 1000);
    EXPECT_LT(shortest, link::kFarewell / 2);
}

TEST_P(QuicRefused, a_flood_of_refusals_is_bounded_and_other_links_lose_nothing) {
    Address address;
    Address other;
    auto server = serve(2, address);
    auto survivor = serve(3, other);
    const port::LinkId link = connect(address);
    const port::LinkId alive = connect(other);
    client_.send(*client_.story(alive).link, {.seed = 5, .bytes = scaled(20'000'000)});
    server->kill();
    const TimePoint begin = driver_.now();
    const std::vector<std::byte> datagram = std::vector<std::byte>(100);
    const bool done = driver_.run_until(
        [&] {
            if (!client_.story(link).down) {
                for (int i = 0; i < 20; ++i) client_.story(link).link->send_datagram(datagram);
            }
            return client_.sending() == 0 && driver_.now() - begin > milliseconds(300);
        },
        patience(seconds(30)));
    ASSERT_TRUE(done) << driver_.describe();
    EXPECT_EQ(client_.outcomes(port::SendOutcome::delivered), 1U);
    const auto elapsed = (driver_.now() - begin) / port::kRefusedInterval;
    EXPECT_GE(refusals_[link.value()], 3U);
    EXPECT_LE(refusals_[link.value()], static_cast<std::size_t>(elapsed) + 1);
    EXPECT_EQ(refusals_[alive.value()], 0U);
    EXPECT_GT(client_.carrier().socket().counts().icmp_errors, refusals_[link.value()]);
    EXPECT_FALSE(client_.story(alive).down);
}

}  // namespace
}  // namespace nexar::testing

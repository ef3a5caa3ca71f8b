// Servers that die, and servers that restart.

#include <gmock/gmock.h>

#include <csignal>

#include "process/quic/wire.hpp"
#include "support/child_process.hpp"

namespace nexar::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class QuicRestart : public ::testing::Test {
protected:
    QuicRestart() : pool_(PoolProfile::training()) {
        link_.keep_alive = milliseconds(200);
        link_.idle_timeout = seconds(30);
    }

    /// A server in another process, which keeps its secret across restarts.
    std::unique_ptr<ChildProcess> serve(const Address& local) {
        auto child = std::make_unique<ChildProcess>([&](Channel& channel) {
            BufferPool pool(PoolProfile::training());
            quic::EndpointOptions options = node_options(cluster_, 0, link_);
            std::array<std::byte, 32> secret{};
            fill_pattern(5, 0, secret);
            options.secret = Secret(secret);
            Station server(local, pool, std::move(options));
            channel.say(server.address().text());
            LinkDriver driver;
            driver.add(server);
            driver.run_for(std::chrono::minutes(5));
        });
        const auto said = child->channel().hear(patience(seconds(20)));
        if (!said) throw Error(Errc::timed_out, "the server did not start");
        address_ = Address::parse(*said).value();
        return child;
    }

    /// Makes a link from the client to the server.
    port::LinkId connect(Station& client, LinkDriver& driver) {
        driver.add(client);
        const auto link = client.dial(address_, {.cluster = cluster_.id(), .node = {}});
        if (!driver.run_until([&] { return client.story(link).came_up; }, patience(seconds(20)))) {
            throw Error(Errc::timed_out, driver.describe());
        }
        return link;
    }

    /// Kills the server, starts it again, and waits until the client's link is down.
    void expect_restart_noticed(std::unique_ptr<ChildProcess>& server, Station& client,
                                port::LinkId link, LinkDriver& driver) {
        server->kill();
        server = serve(address_);
        const TimePoint back = driver.now();
        ASSERT_TRUE(driver.run_until([&] { return client.story(link).down.has_value(); },
                                     patience(seconds(20))))
            << driver.describe();
        EXPECT_LT(client.story(link).down_at - back, patience(seconds(2)));
    }

    TestCluster cluster_;
    quic::LinkOptions link_ = ethernet_link();
    BufferPool pool_;
    Address address_;
};

TEST_F(QuicRestart, is_noticed_by_an_idle_client_with_its_next_keep_alive) {
    auto server = serve(loopback());
    Station client(loopback(), pool_, node_options(cluster_, 1, link_));
    LinkDriver driver;
    const port::LinkId link = connect(client, driver);
    ASSERT_NO_FATAL_FAILURE(expect_restart_noticed(server, client, link, driver));
    EXPECT_EQ(client.story(link).down->code(), Errc::link_closed);
    EXPECT_THAT(client.story(link).down->what(), HasSubstr("restarted"));
}

TEST_F(QuicRestart, is_noticed_in_the_middle_of_a_transfer_and_a_new_link_can_be_made) {
    auto server = serve(loopback());
    Station client(loopback(), pool_, node_options(cluster_, 1, link_));
    LinkDriver driver;
    const port::LinkId link = connect(client, driver);
    client.send(*client.link(), {.seed = 3, .bytes = std::uint64_t{1} << 40U});
    driver.run_until([&] { return client.connection(link).statistics().in_flight > 100'000; },
                     patience(seconds(20)));
    ASSERT_NO_FATAL_FAILURE(expect_restart_noticed(server, client, link, driver));
    EXPECT_THAT(client.story(link).down->what(), HasSubstr("restarted"));
    EXPECT_EQ(client.outcomes(port::SendOutcome::link_lost), 1U);

    const auto again = client.dial(address_, {.cluster = cluster_.id(), .node = {}});
    EXPECT_TRUE(
        driver.run_until([&] { return client.story(again).came_up; }, patience(seconds(20))))
        << driver.describe();
}

TEST_F(QuicRestart, a_killed_server_is_noticed_within_a_second_of_the_next_send) {
    link_.keep_alive = seconds(60);  // only the message needs an answer
    for (const bool v6 : {false, true}) {
        auto server = serve(loopback(v6));
        Station client(v6 ? Address::any(true) : loopback(), pool_,
                       node_options(cluster_, 1, link_));
        LinkDriver driver;
        const port::LinkId link = connect(client, driver);
        server->kill();
        const TimePoint sent = driver.now();
        client.send(*client.link(), {.seed = 3, .bytes = 1000});
        ASSERT_TRUE(driver.run_until([&] { return client.story(link).down.has_value(); },
                                     patience(seconds(20))))
            << driver.describe();
        EXPECT_EQ(client.story(link).down->code(), Errc::timed_out);
        EXPECT_THAT(client.story(link).down->what(), HasSubstr("no process listens at"));
        EXPECT_GE(client.story(link).down_at - sent, milliseconds(450));
        EXPECT_LT(client.story(link).down_at - sent, patience(seconds(1)));
        EXPECT_EQ(client.outcomes(port::SendOutcome::link_lost), 1U);
    }
}

TEST_F(QuicRestart, a_killed_idle_server_is_noticed_after_the_next_keep_alive) {
    auto server = serve(loopback());
    Station client(loopback(), pool_, node_options(cluster_, 1, link_));
    LinkDriver driver;
    const port::LinkId link = connect(client, driver);
    server->kill();
    const TimePoint killed = driver.now();
    ASSERT_TRUE(driver.run_until([&] { return client.story(link).down.has_value(); },
                                 patience(seconds(20))))
        << driver.describe();
    EXPECT_THAT(client.story(link).down->what(), HasSubstr("no process listens at"));
    EXPECT_LT(client.story(link).down_at - killed, link_.keep_alive + patience(seconds(1)));
}

TEST_F(QuicRestart, a_dial_to_a_closed_port_fails_within_a_second) {
    auto server = serve(loopback());
    server->kill();
    Station client(loopback(), pool_, node_options(cluster_, 1, link_));
    LinkDriver driver;
    driver.add(client);
    const TimePoint start = driver.now();
    const auto link = client.dial(address_, {.cluster = cluster_.id(), .node = {}});
    ASSERT_TRUE(driver.run_until([&] { return client.story(link).down.has_value(); },
                                 patience(seconds(20))));
    EXPECT_LT(client.story(link).down_at - start, patience(seconds(1)));
    EXPECT_EQ(client.story(link).down->code(), Errc::timed_out);
}

TEST_F(QuicRestart, a_link_to_a_stopped_server_ends_after_the_idle_timeout) {
    link_.idle_timeout = seconds(1);
    auto server = serve(loopback());
    Station client(loopback(), pool_, node_options(cluster_, 1, link_));
    LinkDriver driver;
    const port::LinkId link = connect(client, driver);
    const TimePoint stopped = driver.now();
    ASSERT_EQ(::kill(server->id(), SIGSTOP), 0);
    ASSERT_TRUE(driver.run_until([&] { return client.story(link).down.has_value(); },
                                 patience(seconds(20))))
        << driver.describe();
    EXPECT_EQ(client.story(link).down->code(), Errc::timed_out);
    EXPECT_THAT(client.story(link).down->what(),
                AllOf(HasSubstr("nothing was heard from"),
                      HasSubstr("its process ended or is stopped, its host is down, or the network "
                                "path is interrupted")));
    // The timeout counts from the last packet received, whatever was sent since.
    EXPECT_GE(client.story(link).down_at - stopped, milliseconds(500));
    EXPECT_LT(client.story(link).down_at - stopped, patience(seconds(2)));
}

}  // namespace
}  // namespace nexar::testing

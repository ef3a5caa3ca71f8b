// Links that are dropped while the peer's process is stopped.

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>

#include "port/memory.hpp"
#include "process/quic/wire.hpp"
#include "support/child_process.hpp"
#include "support/unmappable_memory.hpp"

namespace nexar::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

/// Sends to the first peer that dials until that link is down, then says why it ended.
void send_until_down(Channel& channel, const TestCluster& cluster) {
    BufferPool pool(PoolProfile::training());
    Station server(loopback(), pool, node_options(cluster, 0));
    server.on_opened = [](port::Link&, port::StreamId) { return true; };  // windows stay closed
    channel.say(server.address().text());
    LinkDriver driver;
    driver.add(server);
    std::optional<port::LinkId> first;
    std::string reason = "the link did not end";
    server.on_event = [&](const port::LinkEvent& event) {
        if (const auto* up = std::get_if<port::Up>(&event.what); up != nullptr && !first) {
            first = event.link;
            server.send(*up->link, {.seed = 3, .bytes = std::uint64_t{1} << 40U});
        }
    };
    driver.run_until([&] { return first && server.story(*first).down.has_value(); },
                     std::chrono::minutes(2));
    if (first && server.story(*first).down) reason = server.story(*first).down->what();
    channel.say(reason);
}

TEST(QuicDrop, a_stopped_process_that_continues_reaches_nothing) {
    const TestCluster cluster;
    ChildProcess child([&](Channel& channel) { send_until_down(channel, cluster); });
    const auto said = child.channel().hear(patience(seconds(20)));
    ASSERT_TRUE(said.has_value());
    BufferPool pool(PoolProfile::training());
    Station client(loopback(), pool, node_options(cluster, 1));
    LinkDriver driver;
    driver.add(client);
    std::size_t events = 0;
    client.on_event = [&](const port::LinkEvent&) { ++events; };
    const port::LinkId link =
        client.dial(Address::parse(*said).value(), {.cluster = cluster.id(), .node = {}});
    ASSERT_TRUE(
        driver.run_until([&] { return client.story(link).came_up; }, patience(seconds(20))));
    const UnmappableMemory memory(8'000'000);
    const std::array regions{port::ConstBytes(memory.bytes())};
    port::MemorySource source(regions);
    for (int i = 0; i < 4; ++i) client.link()->send(source, {});
    ASSERT_TRUE(driver.run_until([&] { return client.received_bytes() > 1'000'000; },
                                 patience(seconds(20))));

    ASSERT_EQ(::kill(child.id(), SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child.id(), &status, WUNTRACED), child.id());
    ASSERT_TRUE(WIFSTOPPED(status));
    client.on_event = [&](const port::LinkEvent& event) {
        // From the release on, the sender's memory belongs to its owner again.
        if (std::holds_alternative<port::Down>(event.what)) memory.unmap();
        ++events;
    };
    const TimePoint begin = driver.now();
    client.link()->drop("stopped for too long");
    ASSERT_TRUE(driver.run_until([&] { return client.story(link).down.has_value(); },
                                 patience(seconds(1))));
    EXPECT_LT(client.story(link).down_at - begin, patience(seconds(1)) / 10);
    EXPECT_EQ(client.story(link).down->code(), Errc::link_closed);
    EXPECT_EQ(client.outcomes(port::SendOutcome::link_lost), 4U);
    driver.run_until([&] { return client.endpoint().connections() == 0; }, patience(seconds(1)));
    EXPECT_EQ(client.endpoint().connections(), 0U) << "the dropped link lingers";

    const std::size_t before = events;
    const std::uint64_t received = client.received_bytes();
    ASSERT_EQ(::kill(child.id(), SIGCONT), 0);
    std::optional<std::string> ended;
    ASSERT_TRUE(driver.run_until(
        [&] {
            ended = child.channel().heard();
            return ended.has_value();
        },
        patience(seconds(20))));
    EXPECT_THAT(*ended, HasSubstr("stopped for too long"));
    EXPECT_EQ(client.received_bytes(), received);
    EXPECT_EQ(events, before);
}

}  // namespace
}  // namespace nexar::testing

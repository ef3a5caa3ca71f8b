// Links that are dropped: nothing that the peer can still write reaches this process.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstring>

#include "port/memory.hpp"
#include "support/link_end.hpp"
#include "support/shm_process.hpp"
#include "support/unmappable_memory.hpp"
#include "unit/link/shm/hostile_peer.hpp"
#include "unit/link/shm/open_resources.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using port::Lane;

/// The honest side: keeps the events of its carrier, which a peer in the same process attacks.
struct Attacked {
    std::unique_ptr<shm::Carrier> carrier = std::move(*shm::Carrier::open());
    TimePoint now{1000s};
    std::vector<port::LinkEvent> events{};
    port::Link* link = nullptr;
    port::LinkId id{};

    std::unique_ptr<HostilePeer> attack() {
        auto peer = HostilePeer::join(*carrier, now);
        turn();
        return peer;
    }
    void turn() {
        now += 3ms;
        carrier->on_ready(now);
        carrier->flush(now);
        while (auto event = carrier->poll_event()) {
            if (auto* up = std::get_if<port::Up>(&event->what)) {
                link = up->link;
                id = event->link;
            }
            events.push_back(std::move(*event));
        }
        carrier->flush(now);
    }
};

shm::RecordHead lane_record() {
    return {.kind = static_cast<std::uint8_t>(shm::RecordKind::lane),
            .detail = static_cast<std::uint8_t>(Lane::eager)};
}

/// Writes into everything that the peer of a dropped link still has.
void write_everything(HostilePeer& peer) {
    while (peer.write(lane_record(), pattern(1, 200))) {
    }
    peer.own.control().taken.store(~std::uint64_t{0});
    peer.own.control().sleep.store(~std::uint32_t{0});
    peer.own.control().ended.store(1);
    std::memset(peer.own.ring(), 0xff, peer.own.ring_bytes());
    shm::ring_bell(peer.socket.number());
}

TEST(ShmDrop, nothing_that_a_peer_writes_after_the_drop_is_read) {
    Attacked side;
    ASSERT_TRUE(side.carrier->invite(side.now, Identity{}).has_value());  // opens the socket
    const OpenResources before = OpenResources::count();
    const auto peer = side.attack();
    ASSERT_NE(peer, nullptr);
    ASSERT_NE(side.link, nullptr);
    CollectingSink sink;
    side.link->receive(Lane::eager, sink);
    ASSERT_TRUE(peer->write(lane_record(), pattern(1, 200)));
    side.turn();
    ASSERT_EQ(sink.bytes.size(), 200U);
    side.events.clear();

    // What the peer wrote before the drop and this side has not read is not read either.
    ASSERT_TRUE(peer->write(lane_record(), pattern(1, 200)));
    side.link->drop("evicted");
    side.carrier->on_ready(side.now);
    EXPECT_TRUE(side.carrier->fall_asleep()) << "it looked at the ring of a dropped link";
    side.carrier->wake_up();
    side.turn();
    ASSERT_EQ(side.events.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<port::Down>(side.events[0].what));
    // What the peer has: its own memory and ours, two mappings each, and its socket.
    const OpenResources after = OpenResources::count();
    EXPECT_EQ(after.descriptors, before.descriptors + 2);
    EXPECT_EQ(after.memory_mappings, before.memory_mappings + 4) << "this side did not unmap";

    side.events.clear();
    write_everything(*peer);
    for (int i = 0; i < 10; ++i) side.turn();
    EXPECT_TRUE(side.events.empty());
    EXPECT_EQ(sink.bytes.size(), 200U);
    side.carrier->forget(side.id);
}

TEST(ShmDrop, the_memory_of_a_dropped_link_is_not_used_for_another_one) {
    Attacked side;
    std::vector<std::unique_ptr<HostilePeer>> dropped;
    for (int round = 0; round < 20; ++round) {
        dropped.push_back(side.attack());
        ASSERT_NE(dropped.back(), nullptr);
        ASSERT_NE(side.link, nullptr);
        // All words of a fresh ring are zero, and no earlier peer sees the later ones change.
        EXPECT_EQ(shm::RingReader(dropped.back()->theirs.ring(), 64).head().word(), 0U);
        const std::array<port::ConstBytes, 1> pieces{bytes_of("only for the newest peer")};
        ASSERT_TRUE(side.link->write(Lane::eager, pieces));
        std::vector<std::vector<std::byte>> seen;
        for (const auto& peer : dropped) {
            seen.emplace_back(peer->theirs.ring(), peer->theirs.ring() + 4096);
        }
        CollectingSink sink;
        side.link->receive(Lane::eager, sink);
        for (std::size_t i = 0; i + 1 < dropped.size(); ++i) write_everything(*dropped[i]);
        ASSERT_TRUE(dropped.back()->write(lane_record(), bytes_of("from the newest peer")));
        side.turn();
        EXPECT_EQ(sink.bytes.size(), bytes_of("from the newest peer").size());
        side.link->drop("next");
        side.turn();
        for (std::size_t i = 0; i + 1 < dropped.size(); ++i) {
            EXPECT_EQ(std::memcmp(seen[i].data(), dropped[i]->theirs.ring(), seen[i].size()), 0)
                << "the ring of a dropped link changed";
        }
        side.carrier->forget(side.id);
        side.link = nullptr;
    }
}

/// Floods its link until it is down, then says how it ended.
void flood_until_down(Channel& channel) {
    ShmProcess* there = nullptr;
    CountingSink sink;
    ShmProcess side({}, [&](port::LinkEvent& event) {
        if (auto* opened = std::get_if<port::Opened>(&event.what)) {
            there->link().receive(opened->stream, sink);  // the window stays closed
        }
    });
    there = &side;
    if (!side.accept(channel)) return;
    const auto bytes = pattern(3, 3'000);
    const auto content = pattern(4, 40'000'000);
    const std::array regions{port::ConstBytes(content)};
    port::MemorySource source(regions);
    for (int i = 0; i < 4; ++i) side.link().send(source, {});
    const std::array<port::ConstBytes, 1> pieces{bytes};
    const bool ended = side.spin_until(
        [&] {
            if (side.down()) return true;
            side.link().write(Lane::eager, pieces);
            side.link().send_datagram(bytes);
            return false;
        },
        60s);
    channel.say(ended ? side.down()->reason.what() : "the link did not end");
}

TEST(ShmDrop, a_stopped_process_that_continues_reaches_nothing) {
    const auto keep = [](ShmProcess& side) {
        return side.carrier().invite(side.now(), Identity{}).has_value();  // opens the socket
    };
    std::size_t arrived = 0;
    ShmProcess* there = nullptr;
    CountingSink sink;
    ShmProcess side({}, [&](port::LinkEvent& event) {
        ++arrived;
        if (auto* opened = std::get_if<port::Opened>(&event.what)) {
            there->link().receive(opened->stream, sink);
            there->link().open_window(opened->stream);
        }
    });
    there = &side;
    ASSERT_TRUE(keep(side));
    ChildProcess child(flood_until_down);
    const OpenResources before = OpenResources::count();
    ASSERT_TRUE(side.invite(child.channel()));
    side.link().receive(Lane::eager, sink);
    const UnmappableMemory memory(8'000'000);
    const std::array regions{port::ConstBytes(memory.bytes())};
    port::MemorySource source(regions);
    for (int i = 0; i < 4; ++i) side.link().send(source, {});
    ASSERT_TRUE(side.sleep_until([&] { return sink.count > 1'000'000; }));

    ASSERT_EQ(::kill(child.id(), SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child.id(), &status, WUNTRACED), child.id());
    ASSERT_TRUE(WIFSTOPPED(status));
    const TimePoint begin = side.now();
    side.link().drop("stopped for too long");
    side.carrier().flush(begin);
    memory.unmap();
    side.turn();
    const Duration took = side.now() - begin;
    ASSERT_TRUE(side.down().has_value());
    EXPECT_EQ(side.down()->reason.code(), Errc::link_closed);
    EXPECT_LT(took, 100ms);
    EXPECT_EQ(OpenResources::count(), before) << "the dropped link kept something";
    side.forget();

    const std::uint64_t count = sink.count;
    const std::size_t events = arrived;
    ASSERT_EQ(::kill(child.id(), SIGCONT), 0);
    std::optional<std::string> said;
    ASSERT_TRUE(side.spin_until(
        [&] {
            said = child.channel().heard();
            return said.has_value();
        },
        20s));
    EXPECT_NE(said->find("stopped for too long"), std::string::npos) << *said;
    EXPECT_EQ(sink.count, count);
    EXPECT_EQ(arrived, events);
}

}  // namespace
}  // namespace nexar::testing

// Links between processes: traffic, SIGKILL, SIGSTOP.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "port/memory.hpp"
#include "support/link_end.hpp"
#include "support/seed.hpp"
#include "support/shm_process.hpp"
#include "support/unmappable_memory.hpp"
#include "unit/link/shm/open_resources.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using port::Lane;

bool write(ShmProcess& side, Lane lane, std::span<const std::byte> bytes) {
    const std::array<port::ConstBytes, 1> pieces{bytes};
    return side.link().write(lane, pieces);
}

/// Sends everything back that arrives on the eager lane, until the link ends.
void echo(Channel& channel) {
    ShmProcess side;
    if (!side.accept(channel)) throw std::runtime_error("the link did not come up");
    CollectingSink sink;
    side.link().receive(Lane::eager, sink);
    std::size_t answered = 0;
    side.sleep_until(
        [&] {
            if (side.down()) return true;
            const std::span<const std::byte> fresh = std::span(sink.bytes).subspan(answered);
            if (!fresh.empty() && write(side, Lane::eager, fresh)) {
                answered += fresh.size();
                side.turn();
            }
            return false;
        },
        60s);
}

TEST(shm_process, two_processes_exchange_messages_asleep_and_awake) {
    ChildProcess child(echo);
    ShmProcess side;
    ASSERT_TRUE(side.invite(child.channel()));
    CollectingSink sink;
    side.link().receive(Lane::eager, sink);
    std::vector<std::byte> sent;
    for (std::uint64_t i = 0; i < 400; ++i) {
        const auto bytes = pattern(i, 1 + i * 37 % 5'000);
        ASSERT_TRUE(write(side, Lane::eager, bytes));
        sent.insert(sent.end(), bytes.begin(), bytes.end());
        const auto all = [&] { return sink.bytes.size() == sent.size(); };
        ASSERT_TRUE(i % 2 == 0 ? side.sleep_until(all) : side.spin_until(all));
    }
    EXPECT_TRUE(sink.bytes == sent);
    side.link().close("done");
    EXPECT_TRUE(side.sleep_until([&] { return side.down().has_value(); }));
    EXPECT_EQ(child.wait(), 0);
}

/// Random traffic on all lanes and many streams. Both sides know what the other one sends.
class Traffic {
public:
    static constexpr std::uint64_t kWrites = 1'500;
    static constexpr std::uint64_t kStreams = 150;

    Traffic(std::uint64_t own_seed, std::uint64_t peer_seed)
        : random_(own_seed), own_(own_seed), peer_(peer_seed) {}

    static std::vector<std::byte> stream_content(std::uint64_t seed, std::uint64_t number) {
        SplitMix64 mix(seed * 1'000 + number);
        const std::uint64_t size = mix.next() % (mix.next() % 8 == 0 ? 3'000'000 : 90'000);
        return pattern(seed + number, static_cast<std::size_t>(size));
    }
    static std::size_t write_size(std::uint64_t seed, std::uint64_t number) {
        SplitMix64 mix(seed * 7'000 + number);
        return static_cast<std::size_t>(1 + mix.next() % (mix.next() % 20 == 0 ? 60'000 : 200));
    }

    bool run(ShmProcess& side) {
        for (std::size_t i = 0; i < port::kLanes; ++i) {
            side.link().receive(static_cast<Lane>(i), lanes_[i]);
        }
        return side.sleep_until(
            [&] {
                step(side);
                return (written_ == kWrites && released_ == kStreams && all_arrived()) ||
                       side.down();
            },
            20s);
    }
    void on_event(ShmProcess& side, port::LinkEvent& event) {
        if (auto* opened = std::get_if<port::Opened>(&event.what)) {
            CollectingSink& sink = sinks_[opened->stream.value()];
            side.link().receive(opened->stream, sink);
            side.link().open_window(opened->stream);
        } else if (std::holds_alternative<port::Finished>(event.what)) {
            ++finished_;
        } else if (auto* released = std::get_if<port::Released>(&event.what)) {
            delivered_ += released->outcome == port::SendOutcome::delivered ? 1 : 0;
            sending_.erase(released->stream.value());
            ++released_;
        }
    }
    std::string state() const {
        return std::to_string(written_) + " writes, " + std::to_string(sent_) + " streams sent, " +
               std::to_string(released_) + " released, " + std::to_string(finished_) + " finished";
    }
    /// Empty if everything arrived as it was sent.
    std::string mistakes() const {
        std::string found;
        if (delivered_ != kStreams) found += "streams were not delivered; ";
        for (const auto& [id, sink] : sinks_) {
            std::uint64_t number = 0;
            std::memcpy(&number, sink.bytes.data(), sizeof number);
            const auto content = std::span(sink.bytes).subspan(sizeof number);
            if (!std::ranges::equal(content, stream_content(peer_, number))) {
                found += "a stream differs; ";
            }
        }
        std::array<std::vector<std::byte>, port::kLanes> expected;
        for (std::uint64_t i = 0; i < kWrites; ++i) {
            const auto bytes = pattern(peer_ ^ i, write_size(peer_, i));
            auto& lane = expected[i % port::kLanes];
            lane.insert(lane.end(), bytes.begin(), bytes.end());
        }
        for (std::size_t i = 0; i < port::kLanes; ++i) {
            if (lanes_[i].bytes != expected[i]) found += "a lane differs; ";
        }
        return found;
    }

private:
    struct Sending {
        std::vector<std::byte> content{};
        std::array<port::ConstBytes, 1> regions{};
        std::unique_ptr<port::MemorySource> source{};
    };

    void step(ShmProcess& side) {
        for (int i = 0; i < 4; ++i) {
            if (written_ < kWrites && write(side, static_cast<Lane>(written_ % port::kLanes),
                                            pattern(own_ ^ written_, write_size(own_, written_)))) {
                ++written_;
            }
        }
        // With none in flight, nothing that arrives would lead to another step.
        const bool in_flight = sent_ != released_;
        if (sent_ < kStreams && (!in_flight || random_.chance(0.3))) {
            Sending sending{.content = stream_content(own_, sent_)};
            sending.regions = {port::ConstBytes(sending.content)};
            auto& kept = sending_[sent_] = std::move(sending);
            kept.regions = {port::ConstBytes(kept.content)};
            kept.source = std::make_unique<port::MemorySource>(kept.regions);
            const auto priority = static_cast<port::Priority>(sent_ % port::kPriorities);
            const port::StreamId id = side.link().send(
                *kept.source,
                {.priority = priority, .prefix = std::as_bytes(std::span(&sent_, 1))});
            if (id.value() != sent_) throw std::runtime_error("stream ids are not in order");
            ++sent_;
        }
    }
    bool all_arrived() {
        if (finished_ != kStreams) return false;
        std::uint64_t lanes = 0;
        for (const auto& lane : lanes_) lanes += lane.bytes.size();
        if (expected_bytes_ == 0) {
            for (std::uint64_t i = 0; i < kWrites; ++i) expected_bytes_ += write_size(peer_, i);
        }
        return lanes == expected_bytes_;
    }

    Random random_;
    std::uint64_t own_;
    std::uint64_t peer_;
    std::array<CollectingSink, port::kLanes> lanes_{};
    std::map<std::uint64_t, CollectingSink> sinks_;
    std::map<std::uint64_t, Sending> sending_;
    std::uint64_t written_ = 0;
    std::uint64_t sent_ = 0;
    std::uint64_t finished_ = 0;
    std::uint64_t released_ = 0;
    std::uint64_t delivered_ = 0;
    std::uint64_t expected_bytes_ = 0;
};

std::string run_traffic(Traffic& traffic, const std::function<bool(ShmProcess&)>& connect) {
    ShmProcess* there = nullptr;
    ShmProcess side({}, [&](port::LinkEvent& event) { traffic.on_event(*there, event); });
    there = &side;
    if (!connect(side)) return "the link did not come up";
    if (!traffic.run(side)) return "the traffic did not end: " + traffic.state();
    side.link().close("done");
    side.sleep_until([&] { return side.down().has_value(); });
    return traffic.mistakes();
}

TEST(shm_process, random_traffic_in_both_directions_arrives_as_it_was_sent) {
    const std::uint64_t seed = test_seed(7);
    ChildProcess child([&](Channel& channel) {
        Traffic traffic(seed + 1, seed);
        channel.say("mistakes: " +
                    run_traffic(traffic, [&](ShmProcess& side) { return side.accept(channel); }));
    });
    Traffic traffic(seed, seed + 1);
    EXPECT_EQ(run_traffic(traffic, [&](ShmProcess& side) { return side.invite(child.channel()); }),
              "");
    EXPECT_EQ(child.channel().hear(10s).value_or("silence"), "mistakes: ");
}

/// Sends as much as it can until it is killed.
void flood(Channel& channel) {
    ShmProcess side;
    if (!side.accept(channel)) return;
    const auto bytes = pattern(3, 300);
    const auto content = pattern(4, 400'000);
    const std::array regions{port::ConstBytes(content)};
    port::MemorySource source(regions);
    for (int i = 0; i < 8; ++i) side.link().send(source, {});
    side.sleep_until(
        [&] {
            if (side.down()) return true;
            write(side, Lane::eager, bytes);
            side.link().send_datagram(bytes);
            return false;
        },
        60s);
}

bool repeats(std::span<const std::byte> bytes, std::span<const std::byte> unit) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] != unit[i % unit.size()]) return false;
    }
    return true;
}

TEST(shm_process, the_death_of_a_peer_is_noticed_within_100_ms_and_leaves_nothing_behind) {
    Random random(test_seed(5));
    ShmProcess* there = nullptr;
    std::map<std::uint64_t, CountingSink> sinks;
    ShmProcess side({}, [&](port::LinkEvent& event) {
        if (auto* opened = std::get_if<port::Opened>(&event.what)) {
            there->link().receive(opened->stream, sinks[opened->stream.value()]);
            there->link().open_window(opened->stream);
        }
    });
    there = &side;
    ASSERT_TRUE(side.carrier().invite(side.now(), Identity{}).has_value());  // opens the socket
    const OpenResources before = OpenResources::count();
    std::vector<Duration> times;
    for (int round = 0; round < 200; ++round) {
        ChildProcess child(flood);
        ASSERT_TRUE(side.invite(child.channel())) << round;
        CollectingSink lane;
        side.link().receive(Lane::eager, lane);
        const Duration life = std::chrono::microseconds(random.below(3'000));
        const bool sleeps = random.chance(0.5);
        const auto run = [&](const std::function<bool()>& done, Duration within) {
            return sleeps ? side.sleep_until(done, within) : side.spin_until(done, within);
        };
        run([] { return false; }, life);
        const TimePoint killed = side.now();
        child.kill();
        ASSERT_TRUE(run([&] { return side.down().has_value(); }, 2s)) << round;
        times.push_back(side.now() - killed);
        EXPECT_TRUE(side.down()->peer_gone) << side.down()->reason.what();
        EXPECT_TRUE(repeats(lane.bytes, pattern(3, 300))) << "complete records only";
        side.forget();
        sinks.clear();
    }
    EXPECT_EQ(OpenResources::count(), before);
    // A busy machine may stop this process for longer now and then.
    std::ranges::sort(times);
    EXPECT_LT(times[times.size() / 2], 100ms);
}

TEST(shm_process, the_death_of_a_large_peer_is_noticed_before_the_kernel_has_freed_its_memory) {
    constexpr std::size_t kBytes = std::size_t{768} << 20U;
    std::size_t early = 0;
    Duration longest{};
    for (int round = 0; round < 5; ++round) {
        ChildProcess child([](Channel& channel) {
            ShmProcess side;
            if (!side.accept(channel)) return;
            const UnmappableMemory memory(kBytes);
            ::madvise(memory.bytes().data(), kBytes, MADV_NOHUGEPAGE);
            for (std::size_t at = 0; at < kBytes; at += 4096) memory.bytes()[at] = std::byte{1};
            channel.say("large");
            side.sleep_until([] { return false; }, 60s);
        });
        ShmProcess side;
        ASSERT_TRUE(side.invite(child.channel()));
        ASSERT_EQ(child.channel().hear(20s), "large");
        ASSERT_FALSE(side.spin_until([&] { return side.down().has_value(); }, 30ms));
        const TimePoint killed = side.now();
        ASSERT_EQ(::kill(child.id(), SIGKILL), 0);
        ASSERT_TRUE(side.spin_until([&] { return side.down().has_value(); }, 20s));
        longest = std::max(longest, side.now() - killed);
        EXPECT_TRUE(side.down()->peer_gone);
        siginfo_t ended{};
        const auto id = static_cast<id_t>(child.id());
        ASSERT_EQ(::waitid(P_PID, id, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        early += ended.si_pid == 0 ? 1 : 0;
    }
    std::printf(
        "noticed %zu of 5 times before the end of the process, at the latest after %lld ms\n",
        early, static_cast<long long>(longest / 1ms));
    EXPECT_GE(early, 1U);
}

TEST(shm_process, a_process_whose_first_thread_has_ended_lives) {
    ChildProcess child([](Channel& channel) {
        // The other thread goes on after the end of this one.
        std::thread([&channel] {
            channel.hear(60s);
            ::_exit(0);
        }).detach();
        channel.say("on");
        ::syscall(SYS_exit, 0);  // ends only this thread
    });
    ASSERT_EQ(child.channel().hear(20s), "on");
    const shm::ProcessLife life(child.id());
    // Until the first thread is a zombie.
    const auto state = [&] {
        std::ifstream stat("/proc/" + std::to_string(child.id()) + "/stat");
        std::string id;
        std::string name;
        std::string letter;
        stat >> id >> name >> letter;
        return letter;
    };
    const SteadyClock clock;
    const TimePoint until = clock.now() + 20s;
    while (state() != "Z" && clock.now() < until) {
    }
    ASSERT_EQ(state(), "Z");
    EXPECT_FALSE(life.has_ended());
    EXPECT_FALSE(shm::ProcessLife(::getpid()).has_ended());
    child.kill();
    EXPECT_TRUE(life.has_ended());
}

TEST(shm_process, the_death_of_a_peer_is_noticed_while_its_child_still_has_the_socket) {
    ChildProcess child([](Channel& channel) {
        ShmProcess side;
        if (!side.accept(channel)) return;
        const pid_t inside = ::fork();
        if (inside == 0) {
            ::pause();
            ::_exit(0);
        }
        channel.say(std::to_string(inside));
        side.sleep_until([] { return false; }, 60s);
    });
    ShmProcess side;
    ASSERT_TRUE(side.invite(child.channel()));
    const auto inside = child.channel().hear(5s);
    ASSERT_TRUE(inside.has_value());
    child.kill();
    EXPECT_TRUE(side.sleep_until([&] { return side.down().has_value(); }, 2s));
    EXPECT_TRUE(side.down() && side.down()->peer_gone);
    ::kill(static_cast<pid_t>(std::stol(*inside)), SIGKILL);
}

TEST(shm_process, traffic_goes_on_after_a_pause) {
    ChildProcess child(echo);
    ShmProcess side;
    ASSERT_TRUE(side.invite(child.channel()));
    CollectingSink sink;
    side.link().receive(Lane::eager, sink);
    const auto bytes = pattern(1, 3'000'000);
    ASSERT_EQ(::kill(child.id(), SIGSTOP), 0);
    ASSERT_TRUE(write(side, Lane::eager, bytes));
    side.sleep_until([] { return false; }, 1s);
    EXPECT_FALSE(side.down().has_value());
    EXPECT_TRUE(sink.bytes.empty());
    ASSERT_EQ(::kill(child.id(), SIGCONT), 0);
    EXPECT_TRUE(side.sleep_until([&] { return sink.bytes.size() == bytes.size(); }));
    EXPECT_TRUE(sink.bytes == bytes);
}

}  // namespace
}  // namespace nexar::testing

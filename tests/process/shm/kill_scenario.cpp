#include "process/shm/kill_scenario.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "process/p2p/deadline_table.hpp"
#include "process/shm/host_world.hpp"
#include "process/shm/resources.hpp"
#include "process/shm/traffic.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {

namespace {

using namespace std::chrono_literals;
using Microseconds = std::chrono::microseconds;

constexpr auto kNoticedWithin = kSanitized ? 500ms : 100ms;
/// The first worlds of a process allocate what later ones use again.
constexpr int kWarmUp = 3;
/// Mostly free memory that the allocator keeps in pieces; kMostHeapGrowth bounds the rest.
constexpr std::size_t kMostGrowth = std::size_t{24} << 20U;
constexpr std::size_t kMostHeapGrowth = std::size_t{256} << 10U;

std::int64_t in_us(std::chrono::steady_clock::time_point time) {
    return std::chrono::duration_cast<Microseconds>(time.time_since_epoch()).count();
}

/// The order of the parent to take part in a world.
struct Order {
    int rank = 0;
    int lost = 0;
    int world = 0;

    std::string text() const { return fmt::format("join {} {} {}", rank, lost, world); }
    static std::optional<Order> parse(const std::string& text) {
        std::istringstream words(text);
        std::string verb;
        Order order;
        if (!(words >> verb >> order.rank >> order.lost >> order.world) || verb != "join")
            return {};
        return order;
    }
};

/// What a survivor reports about one kill.
struct Report {
    std::int64_t first_us = 0;  // when its first operation failed
    std::int64_t last_us = 0;
    std::int64_t delayed_us = 0;  // by the machine
    std::uint64_t rounds = 0;
    std::string wrong{};

    std::string text() const {
        return fmt::format("failed {} {} {} {} {}", first_us, last_us, delayed_us, rounds, wrong);
    }
    static Report parse(const std::string& text) {
        std::istringstream words(text);
        std::string verb;
        Report report;
        words >> verb >> report.first_us >> report.last_us >> report.delayed_us >> report.rounds;
        std::getline(words >> std::ws, report.wrong);
        return report;
    }
};

std::string text_of(const Resources& used) {
    return fmt::format("used {} {} {} {} {}", used.descriptors, used.shared_pieces, used.mappings,
                       used.heap_bytes, used.resident_bytes);
}

Resources parse_resources(const std::string& text) {
    std::istringstream words(text);
    std::string verb;
    Resources used;
    words >> verb >> used.descriptors >> used.shared_pieces >> used.mappings >> used.heap_bytes >>
        used.resident_bytes;
    return used;
}

/// Makes a world of the survivors and exchanges a message with each.
void talk_to_survivors(const Communicator& before) {
    constexpr std::uint64_t kTag = std::uint64_t{1} << 40U;
    const Communicator world = before.shrink();
    for (int peer = 0; peer < world.size(); ++peer) {
        if (peer == world.rank()) continue;
        const std::uint32_t sent = 100U + static_cast<std::uint32_t>(world.rank());
        std::uint32_t got = 0;
        auto exchange = world.send_recv(std::span(&sent, 1), peer, std::span(&got, 1), peer, kTag);
        finish(exchange, soon());
        if (got != 100U + static_cast<std::uint32_t>(peer))
            throw Error(Errc::malformed, "a survivor received a wrong message");
    }
}

/// Runs traffic until the lost rank has been killed.
Report run_until_lost(Traffic& traffic, int lost, const Channel& parent) {
    const LocalDelay delay;
    Report report;
    Traffic::Ended ended;
    std::chrono::nanoseconds before{};
    parent.say("runs");
    do {
        before = delay.so_far();
        ended = traffic.run_round_without(lost, soon());
    } while (ended.all_succeeded);
    report.delayed_us = std::chrono::duration_cast<Microseconds>(delay.so_far() - before).count();
    report.first_us = in_us(ended.first_failure);
    report.last_us = in_us(ended.last_failure);
    report.rounds = traffic.rounds();
    for (const std::string& one : ended.wrong) report.wrong += one + "; ";
    return report;
}

void take_part(const TestCluster& cluster, const Order& order, const Channel& parent) {
    // A killed rank does not answer a node that closes.
    const link::LinkSettings settings{.linger = 100ms};
    const auto member =
        join_host_world(cluster, parent, {order.rank, order.world}, "shm", settings);
    Traffic traffic(member->node());
    traffic.started();
    if (order.rank == order.lost) {
        parent.say("runs");
        for (;;) traffic.run_round();
    }
    parent.say(run_until_lost(traffic, order.lost, parent).text());
    await(parent, "talk", kWithin);
    Communicator world = member->world();
    talk_to_survivors(world);
    parent.say("talked");
    leave(*member, parent);
}

/// A process that takes part in one world after the other.
void survive(const TestCluster& cluster, const Channel& parent) {
    for (;;) {
        const std::string text = hear(parent, kWithin);
        const auto order = Order::parse(text);
        if (!order) return;
        take_part(cluster, *order, parent);
        parent.say(text_of(resources()));
    }
}

/// The parent of all ranks: one world after the other.
class Killer {
public:
    explicit Killer(const KillPlan& plan) : plan_(plan), random_(plan.seed) {
        for (int i = 1; i < plan.world; ++i) {
            survivors_.push_back(std::make_unique<ChildProcess>(
                [&](const Channel& parent) { survive(cluster_, parent); }));
        }
    }

    void run() {
        for (int kill = 0; kill < plan_.kills && !::testing::Test::HasFailure(); ++kill) {
            SCOPED_TRACE(fmt::format("kill {}", kill));
            run_world(kill);
        }
        for (const auto& survivor : survivors_) {
            survivor->channel().say("stop");
            EXPECT_EQ(survivor->wait(), 0);
        }
        print_times();
    }

private:
    void run_world(int number) {
        const int lost = static_cast<int>(random_() % static_cast<unsigned>(plan_.world));
        ChildProcess victim([&](const Channel& parent) {
            take_part(cluster_, {.rank = lost, .lost = lost, .world = plan_.world}, parent);
        });
        std::vector<const Channel*> channels;
        std::size_t next = 0;
        for (int rank = 0; rank < plan_.world; ++rank) {
            if (rank == lost) {
                channels.push_back(&victim.channel());
                continue;
            }
            channels.push_back(&survivors_[next++]->channel());
            channels.back()->say(Order{.rank = rank, .lost = lost, .world = plan_.world}.text());
        }
        introduce(channels);
        for (const Channel* rank : channels) await(*rank, "runs", kWithin);
        const auto sockets = abstract_sockets_of(victim.id());
        // This sleep waits for nothing: the test is about the moment of the kill.
        std::this_thread::sleep_for(
            Microseconds(random_() % static_cast<std::uint64_t>(plan_.latest.count())));
        const auto killed = std::chrono::steady_clock::now();
        victim.kill();
        const auto took = std::chrono::steady_clock::now() - killed;
        expect_reports(in_us(killed), std::chrono::duration_cast<Microseconds>(took));
        for (const auto& survivor : survivors_) survivor->channel().say("talk");
        for (const auto& survivor : survivors_) await(survivor->channel(), "talked", kWithin);
        for (const auto& survivor : survivors_) survivor->channel().say("leave");
        for (const std::string& name : sockets) EXPECT_FALSE(abstract_socket_exists(name)) << name;
        expect_nothing_kept(number);
    }

    /// `dying` is the time until the kernel had ended the process, most of it on a busy machine the
    /// time until it got a processor.
    void expect_reports(std::int64_t killed_us, Microseconds dying) {
        dying_us_.push_back(dying.count());
        for (const auto& survivor : survivors_) {
            const Report report = Report::parse(hear(survivor->channel(), kWithin));
            EXPECT_EQ(report.wrong, "");
            const auto took = Microseconds(report.last_us - killed_us);
            EXPECT_LE(took, kNoticedWithin + dying + Microseconds(report.delayed_us))
                << "the machine delayed the survivor by " << report.delayed_us
                << " us and the end of the killed rank by " << dying.count() << " us";
            first_us_.push_back(report.first_us - killed_us);
            last_us_.push_back(report.last_us - killed_us);
            rounds_ += report.rounds;
        }
    }

    void expect_nothing_kept(int number) {
        std::vector<Resources> now;
        for (const auto& survivor : survivors_) {
            now.push_back(parse_resources(hear(survivor->channel(), kWithin)));
            EXPECT_EQ(now.back().shared_pieces, 0U);
        }
        if (number == 0) first_ = now;
        if (number == kWarmUp) warm_ = now;
        for (std::size_t i = 0; i < now.size(); ++i) {
            EXPECT_EQ(now[i].descriptors, first_[i].descriptors);
            if (number < kWarmUp || kSanitized) continue;
            const auto growth = [](std::size_t before, std::size_t after) {
                return after - std::min(before, after);
            };
            EXPECT_LE(growth(warm_[i].resident_bytes, now[i].resident_bytes), kMostGrowth);
            EXPECT_LE(growth(warm_[i].heap_bytes, now[i].heap_bytes), kMostHeapGrowth);
        }
        last_ = now;
    }

    void print_times() {
        const auto line = [](const char* what, std::vector<std::int64_t> us) {
            if (us.empty()) return;
            std::ranges::sort(us);
            const auto at = [&](std::size_t percent) {
                return static_cast<double>(us[(us.size() - 1) * percent / 100]) / 1000;
            };
            std::printf("%s: p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, max %.2f ms (%zu times)\n",
                        what, at(50), at(90), at(99), at(100), us.size());
        };
        line("from the kill to the end of the process", dying_us_);
        line("from the kill to the first error", first_us_);
        line("from the kill to the last error", last_us_);
        std::printf("%.1f rounds of traffic per kill\n",
                    static_cast<double>(rounds_) /
                        static_cast<double>(std::max<std::size_t>(last_us_.size(), 1)));
        if (last_.empty() || warm_.empty()) return;
        std::printf(
            "a survivor after %d kills: %zu descriptors (%zu), %zu mappings (%zu), "
            "heap %zu bytes (%zu), resident %zu kB (%zu)\n",
            plan_.kills, last_[0].descriptors, first_[0].descriptors, last_[0].mappings,
            first_[0].mappings, last_[0].heap_bytes, warm_[0].heap_bytes,
            last_[0].resident_bytes / 1000, warm_[0].resident_bytes / 1000);
    }

    KillPlan plan_;
    std::mt19937_64 random_;
    TestCluster cluster_;
    std::vector<std::unique_ptr<ChildProcess>> survivors_;
    std::vector<std::int64_t> dying_us_;
    std::vector<std::int64_t> first_us_;
    std::vector<std::int64_t> last_us_;
    std::uint64_t rounds_ = 0;
    std::vector<Resources> first_;
    std::vector<Resources> warm_;
    std::vector<Resources> last_;
};

void expect_shared_memory_with_all(const Node& node) {
    for (const PeerLink& peer : node.peers()) {
        if (!peer.connected || std::ranges::find(peer.links, "shm") == peer.links.end())
            throw Error(Errc::link_closed, fmt::format("no shared memory with {}", peer.rank));
    }
}

/// Runs traffic until the parent tells rank 0 that it is enough, and then a few more rounds.
void run_until_told(Member& member, const Channel& parent) {
    constexpr int kMoreRounds = 3;
    Traffic traffic(member.node());
    traffic.started();
    parent.say("runs");
    Communicator world = member.world();
    for (std::uint32_t enough = 0; enough == 0;) {
        traffic.run_round();
        // All ranks must end after the same round.
        if (world.rank() == 0 && parent.heard()) enough = 1;
        auto broadcast = world.broadcast(std::span(&enough, 1), 0);
        finish(broadcast, soon());
    }
    for (int i = 0; i < kMoreRounds; ++i) traffic.run_round();
    expect_shared_memory_with_all(member.node());
    parent.say(fmt::format("rounds {}", traffic.rounds()));
    leave(member, parent);
}

}  // namespace

void survive_kills(const KillPlan& plan) {
    Killer(plan).run();
    EXPECT_TRUE(nexar_files_in("/dev/shm").empty());
}

void survive_stops(const StopPlan& plan) {
    std::mt19937_64 random(plan.seed);
    HostWorld world(plan.world, run_until_told);
    world.await_all("runs");
    for (int i = 0; i < plan.stops; ++i) {
        const auto rank = static_cast<std::size_t>(random() % world.size());
        const pid_t process = world.rank(rank).id();
        // Neither sleep waits for anything: the test is about these times.
        std::this_thread::sleep_for(Microseconds(random() % 50'000));
        ::kill(process, SIGSTOP);
        std::this_thread::sleep_for(plan.each);
        ::kill(process, SIGCONT);
    }
    world.rank(0).channel().say("enough");
    for (std::size_t rank = 0; rank < world.size(); ++rank) {
        const std::string said = hear(world.rank(rank).channel(), kWithin);
        EXPECT_TRUE(said.starts_with("rounds ")) << said;
        if (rank == 0) std::printf("%s of traffic\n", said.c_str());
    }
    world.tell_all("leave");
    world.expect_end();
}

}  // namespace nexar::testing

// One pair of members on separate hosts is cut by routes while all ranks run collectives: nobody is
// evicted, the collectives go on through a third rank within a second, and the pair returns to its
// direct path when the routes are gone.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nexar/nexar.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "process/chaos/networks.hpp"
#include "support/child_process.hpp"
#include "support/network_namespace.hpp"

namespace nexar::chaos {
namespace {

using namespace std::chrono_literals;
using testing::Channel;
using testing::ChildProcess;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kAskTime{20};
constexpr std::chrono::seconds kLongest{1};  // that collectives may pause

/// What a rank knows, on request.
struct Status {
    std::uint64_t epoch = 0;
    std::size_t members = 0;
    std::uint64_t rounds = 0;
    std::int64_t longest_us = 0;  // pause between two rounds since the last status
    std::vector<int> hops{};      // to each rank; 0: itself
    std::vector<int> via{};
};

/// Runs checked collectives in which every pair takes part, and answers between them.
class CollectiveRank {
public:
    CollectiveRank(const Channel& channel, Node node)
        : channel_(&channel), node_(std::move(node)), world_(node_.world()) {}

    void run() {
        while (round()) {
            // Also waits for a moment, so that processors are left for the others.
            const auto told = channel_->hear(1ms);
            if (told == "stop") stops_ = true;
            if (told == "status") channel_->say(status());
        }
        channel_->say("stopped");
    }

private:
    std::int64_t word(int from, int to) const {
        return static_cast<std::int64_t>(rounds_) * 1'000'003 + from * 1009 + to * 31;
    }
    /// Returns false if any rank is to stop.
    bool round() {
        const int me = world_.rank();
        const auto size = static_cast<std::size_t>(world_.size());
        std::vector<std::int64_t> out(size);
        std::vector<std::int64_t> in(size);
        std::vector<std::int64_t> wanted(size);
        for (int i = 0; i < world_.size(); ++i) {
            out[static_cast<std::size_t>(i)] = word(me, i);
            wanted[static_cast<std::size_t>(i)] = word(i, me);
        }
        world_.all_to_all(out, in).wait();
        if (in != wanted) throw Error(Errc::protocol_violation, "wrong words in all_to_all");
        std::vector<std::int64_t> votes{stops_ ? 1 : 0, me};
        world_.all_reduce(std::span(votes), sum).wait();
        const auto ranks = static_cast<std::int64_t>(size);
        if (votes[1] != ranks * (ranks - 1) / 2) {
            throw Error(Errc::protocol_violation, "wrong sum in all_reduce");
        }
        ++rounds_;
        const auto now = Clock::now();
        longest_ = std::max(longest_, now - last_);
        last_ = now;
        return votes[0] == 0;
    }
    std::string status() {
        const auto longest_us =
            std::chrono::duration_cast<std::chrono::microseconds>(std::exchange(longest_, {}));
        std::string text = fmt::format("{} {} {} {}", node_.epoch(), node_.members().size(),
                                       rounds_, longest_us.count());
        std::vector<std::pair<int, int>> ways(static_cast<std::size_t>(world_.size()));
        for (const PeerLink& peer : node_.peers()) {
            ways.at(static_cast<std::size_t>(peer.rank)) = {peer.hops, peer.via};
        }
        for (const auto& [hops, via] : ways) text += fmt::format(" {} {}", hops, via);
        return text;
    }

    const Channel* channel_;
    Node node_;
    Communicator world_;
    std::uint64_t rounds_ = 0;
    bool stops_ = false;
    Clock::time_point last_ = Clock::now();
    Clock::duration longest_{};
};

struct Form {
    const char* name = "";
    const char* topology = "";
    int ranks = 0;
    bool refused = false;  // senders get errors; otherwise packets disappear
};

class RoutedPair : public ::testing::TestWithParam<Form> {
protected:
    // Neighbours in every topology.
    static constexpr int kOne = 1;
    static constexpr int kOther = 2;

    void SetUp() override {
        if (!testing::has_ip_command()) GTEST_SKIP() << "no ip command; install iproute2";
        try {
            networks_ = std::make_unique<Networks>(GetParam().ranks + 1);
        } catch (const Error& error) {
            if (error.code() != Errc::unsupported) throw;
            GTEST_SKIP() << "no namespaces for this user; run as root (" << error.what() << ")";
        }
        for (int rank = 0; rank < GetParam().ranks; ++rank) {
            networks_->run(host_of(rank), fmt::format("ip neighbour add {} lladdr "
                                                      "02:00:00:00:00:99 dev cable nud permanent",
                                                      kNobody));
        }
        start_seed();
        for (int rank = 0; rank < GetParam().ranks; ++rank) start_rank(rank);
    }

    static constexpr const char* kNobody = "10.99.0.250";
    static int host_of(int rank) { return rank + 1; }

    void start_seed() {
        seed_ = std::make_unique<ChildProcess>([this](Channel& channel) {
            testing::enter_network_of(networks_->host(0));
            SeedOptions options;
            options.world = GetParam().ranks;
            options.settings = {{"link", "quic"}, {"topology", GetParam().topology}};
            Seed seed(options);
            channel.say(seed.create_token({.uses = options.world}));
            channel.hear(10 * kAskTime);
        });
        const auto said = seed_->channel().hear(kAskTime);
        ASSERT_TRUE(said);
        join_ = *said;
    }
    void start_rank(int rank) {
        ranks_.push_back(std::make_unique<ChildProcess>([this, rank](Channel& channel) {
            testing::enter_network_of(networks_->host(host_of(rank)));
            JoinOptions options;
            options.join_string = join_;
            options.rank = rank;
            CollectiveRank(channel, join(options)).run();
        }));
    }

    void for_the_pair(const std::string& command) {
        for (const auto& [from, to] : {std::pair(kOne, kOther), std::pair(kOther, kOne)}) {
            networks_->run(host_of(from),
                           fmt::format(fmt::runtime(command), Networks::address(host_of(to))));
        }
    }
    void cut() {
        for_the_pair(GetParam().refused
                         ? "ip route add blackhole {}/32"
                         : fmt::format("ip route add {{}}/32 via {} dev cable", kNobody));
    }
    void heal() { for_the_pair("ip route delete {}/32"); }

    Status ask(int rank) {
        const Channel& channel = ranks_.at(static_cast<std::size_t>(rank))->channel();
        channel.say("status");
        const auto said = channel.hear(kAskTime);
        if (!said || said->starts_with("failed: ")) {
            ADD_FAILURE() << "rank " << rank << ": " << said.value_or("says nothing");
            return {};
        }
        std::istringstream text(*said);
        Status status;
        text >> status.epoch >> status.members >> status.rounds >> status.longest_us;
        int hops = 0;
        int via = 0;
        while (text >> hops >> via) {
            status.hops.push_back(hops);
            status.via.push_back(via);
        }
        return status;
    }
    /// Asks all ranks, and keeps the longest pause of any of them.
    std::vector<Status> ask_all() {
        std::vector<Status> all;
        for (int rank = 0; rank < GetParam().ranks; ++rank) {
            all.push_back(ask(rank));
            longest_us_ = std::max(longest_us_, all.back().longest_us);
        }
        return all;
    }
    /// True if both ends use their direct path, or both do not.
    static bool pair_is(bool direct, const std::vector<Status>& all) {
        const auto& there = all.at(kOne).hops;
        const auto& back = all.at(kOther).hops;
        if (there.size() <= kOther || back.size() <= kOther) return false;
        return (there[kOther] == 1) == direct && (back[kOne] == 1) == direct;
    }
    /// Asks until both ends report that way. Returns the last answers.
    std::vector<Status> await(bool direct, std::chrono::seconds at_most) {
        const auto until = Clock::now() + at_most;
        std::vector<Status> all = ask_all();
        while (!pair_is(direct, all) && Clock::now() < until && !HasFailure()) all = ask_all();
        EXPECT_TRUE(pair_is(direct, all)) << "the pair takes the wrong way";
        return all;
    }
    /// Until everybody has completed more rounds.
    void await_rounds(std::uint64_t more) {
        const auto before = ask_all();
        const auto until = Clock::now() + kAskTime;
        for (std::vector<Status> all = before; !HasFailure();) {
            const auto slowest = std::ranges::min(all, {}, &Status::rounds).rounds;
            const auto first = std::ranges::max(before, {}, &Status::rounds).rounds;
            if (slowest >= first + more) return;
            ASSERT_LT(Clock::now(), until) << "the collectives do not go on";
            all = ask_all();
        }
    }
    void expect_nobody_evicted(const std::vector<Status>& now, std::uint64_t epoch) const {
        for (const Status& one : now) {
            EXPECT_EQ(one.epoch, epoch);
            EXPECT_EQ(one.members, static_cast<std::size_t>(GetParam().ranks));
        }
    }
    void stop() {
        for (const auto& rank : ranks_) rank->channel().say("stop");
        for (const auto& rank : ranks_) EXPECT_EQ(rank->channel().hear(kAskTime), "stopped");
    }

    std::unique_ptr<Networks> networks_;
    std::unique_ptr<ChildProcess> seed_;
    std::vector<std::unique_ptr<ChildProcess>> ranks_;
    std::string join_;
    std::int64_t longest_us_ = 0;
};

TEST_P(RoutedPair, continues_through_a_third_rank_and_returns_to_its_path) {
    const std::vector<Status> first = await(true, 10s);
    ASSERT_NO_FATAL_FAILURE(await_rounds(20));
    longest_us_ = 0;

    cut();
    const auto began = Clock::now();
    const std::vector<Status> around = await(false, 5s);
    const std::chrono::duration<double> left = Clock::now() - began;
    ASSERT_FALSE(HasFailure());
    for (const auto& [from, to] : {std::pair(kOne, kOther), std::pair(kOther, kOne)}) {
        const int via = around[static_cast<std::size_t>(from)].via[static_cast<std::size_t>(to)];
        EXPECT_NE(via, -1);
        EXPECT_NE(via, from);
        EXPECT_NE(via, to);
    }
    ASSERT_NO_FATAL_FAILURE(await_rounds(100));
    const std::int64_t pause_us = std::exchange(longest_us_, 0);
    EXPECT_LT(pause_us, std::chrono::microseconds(kLongest).count());
    expect_nobody_evicted(ask_all(), first[0].epoch);

    heal();
    const auto healed = Clock::now();
    const std::vector<Status> after = await(true, 31s);
    const std::chrono::duration<double> returned = Clock::now() - healed;
    ASSERT_NO_FATAL_FAILURE(await_rounds(20));
    EXPECT_LT(longest_us_, std::chrono::microseconds(kLongest).count());
    expect_nobody_evicted(ask_all(), first[0].epoch);
    std::cout << fmt::format(
        "{}: the longest pause after the cut was {:.3f} s; the pair was in a tunnel after "
        "{:.3f} s and direct again {:.3f} s after the routes were gone (longest pause {:.3f} s)\n",
        GetParam().name, static_cast<double>(pause_us) / 1e6, left.count(), returned.count(),
        static_cast<double>(longest_us_) / 1e6);
    stop();
}

INSTANTIATE_TEST_SUITE_P(
    Cut, RoutedPair,
    ::testing::Values(Form{.name = "full_mesh_of_five", .topology = "full", .ranks = 5},
                      Form{.name = "full_mesh_with_errors_of_senders",
                           .topology = "full",
                           .ranks = 5,
                           .refused = true},
                      Form{
                          .name = "four_neighbours_of_six", .topology = "k_regular:4", .ranks = 6}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace nexar::chaos

// The memory cost of an idle peer.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "process/p2p/member.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {
namespace {

constexpr std::size_t kMostPerPeer = 300'000;
constexpr std::size_t kPeers = 17;
constexpr int kRuns = 3;
// A link probes its path MTU half a second after it came up. The measurement includes the memory
// for that and for an exchange of messages.
constexpr Duration kTalk = std::chrono::milliseconds(1500);

enum class Talk : std::uint8_t { again, over };

void send_one(Communicator& world, int to, Talk talk) {
    const auto value = static_cast<std::uint8_t>(talk);
    auto send = world.send(std::span(&value, 1), to, 1);
    finish(send, soon());
}

Talk receive_one(Communicator& world, int from) {
    std::uint8_t value = 0;
    auto receive = world.recv(std::span(&value, 1), from, 1);
    finish(receive, soon());
    return static_cast<Talk>(value);
}

/// Sends a message to each other rank and receives one back.
void talk_with_all(Communicator& world, Talk talk) {
    for (int rank = 0; rank < world.size(); ++rank) {
        if (rank != world.rank()) send_one(world, rank, talk);
    }
    for (int rank = 0; rank < world.size(); ++rank) {
        if (rank != world.rank()) receive_one(world, rank);
    }
}

/// The process of the measured node, whose index equals its rank.
class Measured {
public:
    Measured(const TestCluster& cluster, std::size_t peers, bool dials)
        : cluster_(&cluster), peers_(peers), dials_(dials) {}

    void run(const Channel& parent) const {
        const auto loaded = cluster_->node(0);  // one-time allocations of GnuTLS
        Growth growth;
        Member member(*cluster_, dials_ ? peers_ : 0);
        std::vector<::nexar::Member> members;
        for (std::uint64_t index = 0; index <= peers_; ++index) members.push_back(dialer(index));
        if (dials_) {
            for (std::size_t i = 0; i < peers_; ++i) {
                members[i].addresses = {Address::parse(hear(parent, kWithin)).value()};
            }
        }
        member.form(members);
        if (!dials_) parent.say(member.address().text());
        member.wait_formed().value();
        Communicator world = member.world();
        const auto until = std::chrono::steady_clock::now() + kTalk;
        while (std::chrono::steady_clock::now() < until) talk_with_all(world, Talk::again);
        talk_with_all(world, Talk::over);
        growth.look();
        parent.say(std::to_string(growth.most()));
        await(parent, "leave", kWithin);
        member.node().close();
    }

private:
    const TestCluster* cluster_;
    std::size_t peers_;
    bool dials_;
};

/// How much a child process grows when it creates a node and connects it to `peers` peers. The
/// peers are nodes of this process.
std::size_t growth_with(std::size_t peers, bool dials) {
    const TestCluster cluster;
    ChildProcess child([&](const Channel& parent) { Measured(cluster, peers, dials).run(parent); });
    const std::size_t measured = dials ? peers : 0;
    std::vector<::nexar::Member> members;
    for (std::uint64_t index = 0; index <= peers; ++index) members.push_back(dialer(index));
    if (!dials) members[0].addresses = {Address::parse(hear(child.channel(), kWithin)).value()};
    const auto loop = runtime::make_loop({}).value();
    std::vector<std::unique_ptr<Member>> others;
    // One after another, since each node dials those before it.
    for (std::uint64_t index = 0; index <= peers; ++index) {
        if (index == measured) continue;
        others.push_back(std::make_unique<Member>(cluster, index, loop));
        members[index].addresses = {others.back()->address()};
        others.back()->form(members);
        if (dials) child.channel().say(others.back()->address().text());
    }
    for (const auto& other : others) other->wait_formed().value();
    for (Talk talk = Talk::again; talk == Talk::again;) {
        for (const auto& other : others) {
            Communicator world = other->world();
            talk = receive_one(world, static_cast<int>(measured));
            send_one(world, static_cast<int>(measured), talk);
        }
    }
    const std::size_t growth = std::stoull(hear(child.channel(), kWithin));
    child.channel().say("leave");
    EXPECT_EQ(child.wait(), 0);
    return growth;
}

/// The minimum of several runs, to exclude growth that the peers did not cause.
std::size_t least_growth_with(std::size_t peers, bool dials) {
    std::size_t least = growth_with(peers, dials);
    for (int run = 1; run < kRuns; ++run) least = std::min(least, growth_with(peers, dials));
    return least;
}

void expect_cheap(bool dials) {
    const std::size_t one = least_growth_with(1, dials);
    const std::size_t many = least_growth_with(kPeers, dials);
    const std::size_t each = (many - std::min(many, one)) / (kPeers - 1);
    std::printf("a node takes %zu kB with 1 peer and %zu kB with %zu peers: %zu bytes per peer\n",
                one / 1000, many / 1000, kPeers, each);
    if (kSanitized) return;  // the sanitizers' own memory would count
    EXPECT_GT(each, 0U) << "nothing was measured";
    EXPECT_LE(each, kMostPerPeer);
}

TEST(IdlePeer, a_peer_that_dialed_costs_at_most_300_kb_of_memory) {
    expect_cheap(false);
}

TEST(IdlePeer, a_peer_that_was_dialed_costs_at_most_300_kb_of_memory) {
    expect_cheap(true);
}

}  // namespace
}  // namespace nexar::testing

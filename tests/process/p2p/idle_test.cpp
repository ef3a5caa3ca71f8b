// What a peer costs that does nothing.

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "process/p2p/member.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {
namespace {

constexpr std::size_t kMostPerPeer = 300'000;
constexpr std::size_t kPeers = 17;
constexpr Duration kWithin = patience(std::chrono::seconds(60));

std::chrono::steady_clock::time_point soon() {
    return std::chrono::steady_clock::now() + kWithin;
}

void send_one(Communicator& world, int to) {
    const std::uint64_t value = 1;
    auto send = world.send(std::span(&value, 1), to, 1);
    finish(send, soon());
}

void receive_one(Communicator& world, int from) {
    std::uint64_t value = 0;
    auto receive = world.recv(std::span(&value, 1), from, 1);
    finish(receive, soon());
}

/// The process of the measured node, whose index is that of its rank.
class Measured {
public:
    Measured(const TestCluster& cluster, std::size_t peers, bool dials)
        : cluster_(&cluster), peers_(peers), dials_(dials) {}

    void run(const Channel& parent) const {
        const auto loaded = cluster_->node(0);  // what GnuTLS needs once
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
        // A message each way is in the figure: peers that never spoke are not what one has.
        Communicator world = member.world();
        for (int rank = 0; rank < world.size(); ++rank) {
            if (rank == world.rank()) continue;
            send_one(world, rank);
            receive_one(world, rank);
        }
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

/// How much a process with one node grows from before it has one until it is connected with so many
/// peers, which are nodes of this process here.
std::size_t growth_with(std::size_t peers, bool dials) {
    const TestCluster cluster;
    ChildProcess child([&](const Channel& parent) { Measured(cluster, peers, dials).run(parent); });
    const std::size_t measured = dials ? peers : 0;
    std::vector<::nexar::Member> members;
    for (std::uint64_t index = 0; index <= peers; ++index) members.push_back(dialer(index));
    if (!dials) members[0].addresses = {Address::parse(hear(child.channel(), kWithin)).value()};
    const auto loop = runtime::make_loop({}).value();
    std::vector<std::unique_ptr<Member>> others;
    // One after the other: each dials those before it.
    for (std::uint64_t index = 0; index <= peers; ++index) {
        if (index == measured) continue;
        others.push_back(std::make_unique<Member>(cluster, index, loop));
        members[index].addresses = {others.back()->address()};
        others.back()->form(members);
        if (dials) child.channel().say(others.back()->address().text());
    }
    for (const auto& other : others) other->wait_formed().value();
    for (const auto& other : others) {
        Communicator world = other->world();
        receive_one(world, static_cast<int>(measured));
        send_one(world, static_cast<int>(measured));
    }
    const std::size_t growth = std::stoull(hear(child.channel(), kWithin));
    child.channel().say("leave");
    EXPECT_EQ(child.wait(), 0);
    return growth;
}

void expect_cheap(bool dials) {
    const std::size_t one = growth_with(1, dials);
    const std::size_t many = growth_with(kPeers, dials);
    const std::size_t each = (many - std::min(many, one)) / (kPeers - 1);
    std::printf("a node with 1 peer takes %zu kB, with %zu peers %zu kB: %zu bytes each\n",
                one / 1000, kPeers, many / 1000, each);
    if (kSanitized) return;  // their own memory is in it
    // That something was measured. The two differ by some megabytes from run to run, by which
    // receive buffers were touched, so their difference may be none.
    EXPECT_GT(one, 0U);
    EXPECT_GT(many, 0U);
    EXPECT_LE(each, kMostPerPeer);
}

TEST(IdlePeer, that_dialed_costs_at_most_300_kb_of_memory) {
    expect_cheap(false);
}

TEST(IdlePeer, that_was_dialed_costs_at_most_300_kb_of_memory) {
    expect_cheap(true);
}

}  // namespace
}  // namespace nexar::testing

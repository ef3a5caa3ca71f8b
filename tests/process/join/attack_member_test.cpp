// Attacks by holders of a certificate of the cluster, and the renewal of certificates.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "engine/lane_reader.hpp"
#include "process/join/cluster.hpp"
#include "process/join/stranger.hpp"
#include "security/random_id.hpp"
#include "security/state_directory.hpp"
#include "support/temp_directory.hpp"
#include "wire/preamble.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// Two honest nodes, and an attacker with a certificate of the same CA.
class MemberAttack : public ::testing::Test {
protected:
    MemberAttack() {
        SeedOptions options = seed_options(2);
        options.state_dir = directory_.path() + "/state";
        // 200 handshakes at once keep both processors of a small machine busy.
        options.settings.emplace_back("failure_budget", "20s");
        seed_ = std::make_unique<Seed>(options);
        state_ = options.state_dir;
    }

    void join_both() {
        nodes_ = join_all(*seed_, 2);
        std::ranges::sort(nodes_, {}, [](const Node& node) { return node.world().rank(); });
    }

    std::shared_ptr<const security::Credentials> certified(const NodeId& node) const {
        const auto ca = security::StateDirectory::open(state_).value().existing_ca().value();
        auto key = security::KeyPair::generate().value();
        const auto own = ca.issue({.public_key = key.public_key(),
                                   .identity = {.cluster = ca.cluster(),
                                                .node = node,
                                                .incarnation = Incarnation(1)}},
                                  std::chrono::system_clock::now())
                             .value();
        return security::Credentials::create(std::move(key), own, ca.certificate()).value();
    }

    static Address of(const Node& node) {
        const Address bound = Address::parse(node.address()).value();
        return Address::parse("127.0.0.1:1").value().with_port(bound.port());
    }

    /// The error with which a link ends after a node with these credentials sent Hello to an honest
    /// one.
    Error greet(const std::shared_ptr<const security::Credentials>& credentials, const Node& to,
                const wire::Hello& hello) {
        Stranger stranger(credentials);
        const auto link = stranger.dial_anyone(of(to), credentials->identity().cluster);
        if (!stranger.run_until([&] { return stranger.story(link).link != nullptr; })) {
            return {Errc::timed_out, "it did not come up"};
        }
        std::vector<std::byte> bytes(wire::kPreambleBytes + wire::encoded_size(hello));
        const auto front = wire::encode(wire::Preamble{.lane = wire::Lane::control}, bytes);
        wire::encode(hello, std::span(bytes).subspan(front.value())).value();
        const port::ConstBytes piece(bytes);
        stranger.story(link).link->write(port::Lane::control, {&piece, 1});
        if (!stranger.run_until([&] { return stranger.story(link).down.has_value(); }, 5s)) {
            return {Errc::timed_out, "it was not refused"};
        }
        return *stranger.story(link).down;
    }

    TempDirectory directory_;
    std::string state_;
    std::unique_ptr<Seed> seed_;
    std::vector<Node> nodes_;
};

TEST_F(MemberAttack, the_certificate_of_an_evicted_node_is_refused) {
    join_both();
    const auto evicted = certified(security::new_node_id().value());
    const Error refused = greet(evicted, nodes_[0], {.epoch = Epoch(1)});
    EXPECT_THAT(refused.what(), HasSubstr("not a member of the current view"));
    expect_connected(nodes_);
}

TEST_F(MemberAttack, the_seed_refuses_an_evicted_node) {
    join_both();
    Stranger stranger(certified(security::new_node_id().value()));
    const auto link = stranger.dial({.address = Address::parse(seed_->addresses().front()).value(),
                                     .peer = port::SeedTarget{}});
    ASSERT_TRUE(stranger.run_until([&] { return stranger.story(link).link != nullptr; }));
    Conversation conversation(*stranger.story(link).link);
    conversation.say(wire::Hello{.epoch = Epoch(1)});
    ASSERT_TRUE(stranger.run_until([&] { return conversation.report.has_value(); }));
    EXPECT_EQ(conversation.report->code, Errc::unauthenticated);
    EXPECT_THAT(conversation.report->text, HasSubstr("not a member"));
    expect_connected(nodes_);
}

TEST_F(MemberAttack, claiming_another_rank_is_refused) {
    join_both();
    // The view assigns a rank to the certificate's node, whatever a Hello asks for.
    const auto outsider = certified(security::new_node_id().value());
    const Error refused = greet(outsider, nodes_[0], {.epoch = Epoch(1), .wanted_rank = Rank(1)});
    EXPECT_THAT(refused.what(), HasSubstr("not a member of the current view"));
    // A node with the id of a connected member is refused.
    const auto kept = security::StateDirectory::open(state_).value().seed().value().value();
    const auto twin = certified(NodeId(kept.view.at(0).members.at(1).node));
    const Error second = greet(twin, nodes_[0], {.epoch = Epoch(1), .wanted_rank = Rank(0)});
    EXPECT_THAT(second.what(), HasSubstr("you are already connected"));
    expect_connected(nodes_);
}

TEST_F(MemberAttack, many_links_of_nodes_outside_the_view_are_dropped) {
    join_both();
    const auto unknown = certified(security::new_node_id().value());
    Stranger stranger(unknown);
    std::vector<port::LinkId> links;
    for (int i = 0; i < 200; ++i) {
        links.push_back(stranger.dial_anyone(of(nodes_[0]), unknown->identity().cluster));
        stranger.turn();
    }
    const auto gone = [&] {
        return std::ranges::count_if(links, [&](port::LinkId id) {
                   return stranger.story(id).down.has_value();
               }) >= 100;
    };
    EXPECT_TRUE(stranger.run_until(gone))
        << "links of nodes outside the view are kept without bound";
    expect_connected(nodes_);
}

TEST(Certificates, are_renewed_while_a_node_runs) {
    SeedOptions options = seed_options(2);
    options.settings.emplace_back("certificate_lifetime", "3s");
    options.settings.emplace_back("mesh", "lazy");
    Seed seed(options);
    std::vector<Node> nodes = join_all(seed, 2);
    std::this_thread::sleep_for(4500ms);  // the test needs time to pass
    // The first certificates have expired; the new link uses the second ones.
    expect_connected(nodes);
}

}  // namespace
}  // namespace nexar::testing

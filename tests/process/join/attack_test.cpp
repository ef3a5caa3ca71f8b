// One test per attack on a seed. In each of them the honest nodes still join in time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "link/quic/udp_socket.hpp"
#include "process/join/cluster.hpp"
#include "process/join/stranger.hpp"
#include "security/job_proof.hpp"
#include "security/join_string.hpp"
#include "support/test_cluster.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using security::JoinString;
using ::testing::AnyOf;
using ::testing::HasSubstr;

Address address_of(const Seed& seed) {
    return Address::parse(seed.addresses().front()).value();
}

/// A seed for a world of two, whose honest members join whatever else happens.
class Attack : public ::testing::Test {
protected:
    std::future<Node> join_honestly() { return join_soon(seed_.create_token({})); }

    void expect_honest_nodes_join() {
        std::vector<Node> nodes = join_all(seed_, 2);
        expect_connected(nodes);
    }

    Error refusal(std::string join_string) {
        auto joining = join_soon(std::move(join_string));
        return failure_of(joining);
    }

    JoinString parsed() { return JoinString::parse(seed_.create_token({})).value(); }

    Seed seed_{seed_options(2)};
};

TEST_F(Attack, a_wrong_ca_hash_is_refused) {
    JoinString join = parsed();
    join.ca[7] ^= std::byte{1};
    const Error error = refusal(join.text());
    EXPECT_EQ(error.code(), Errc::unauthenticated) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("the join string names"));
    expect_honest_nodes_join();
}

TEST_F(Attack, a_forged_seed_is_refused) {
    // The seed of another cluster answers at the address of ours.
    Seed forger(seed_options(2));
    JoinString join = parsed();
    join.seeds = forger.addresses();
    const Error error = refusal(join.text());
    EXPECT_EQ(error.code(), Errc::unauthenticated) << error.what();
    // The other seed never saw the token.
    EXPECT_THAT(forger.status(), HasSubstr("0 of 2 joined"));
    expect_honest_nodes_join();
}

TEST_F(Attack, an_unknown_token_is_refused) {
    JoinString join = parsed();
    join.token = security::TokenId();
    const Error error = refusal(join.text());
    EXPECT_EQ(error.code(), Errc::unauthenticated);
    EXPECT_THAT(error.what(), HasSubstr("unknown token"));
    EXPECT_THAT(seed_.status(), HasSubstr("127.0.0.1: it presented an unknown token"));
    expect_honest_nodes_join();
}

TEST_F(Attack, a_guessed_secret_is_refused) {
    JoinString join = parsed();
    join.secret = Secret::filled(security::kTokenSecretBytes, [](std::span<std::byte> bytes) {
        std::ranges::fill(bytes, std::byte{7});
    });
    const Error error = refusal(join.text());
    // The same answer as for an unknown token: the attacker learns nothing.
    EXPECT_THAT(error.what(), HasSubstr("unknown token"));
    expect_honest_nodes_join();
}

TEST_F(Attack, an_expired_token_is_refused) {
    const std::string join_string = seed_.create_token({.ttl = 1s});
    std::this_thread::sleep_for(1100ms);  // the test needs time to pass
    const Error error = refusal(join_string);
    EXPECT_EQ(error.code(), Errc::unauthenticated);
    EXPECT_THAT(error.what(), HasSubstr("expired"));
    expect_honest_nodes_join();
}

TEST_F(Attack, a_used_token_is_refused) {
    const std::string join_string = seed_.create_token({});
    auto first = join_soon(join_string);
    await_status(seed_, "1 of 2");
    const Error error = refusal(join_string);
    EXPECT_EQ(error.code(), Errc::unauthenticated);
    EXPECT_THAT(error.what(), HasSubstr("already used"));
    std::vector<Node> nodes;
    auto second = join_honestly();
    nodes.push_back(first.get());
    nodes.push_back(second.get());
    expect_connected(nodes);
}

TEST_F(Attack, a_token_used_twice_in_parallel_admits_one) {
    const std::string join_string = seed_.create_token({});
    std::vector<std::future<Node>> joins;
    for (int i = 0; i < 4; ++i) joins.push_back(join_soon(join_string));
    joins.push_back(join_honestly());
    std::vector<Node> nodes;
    int refused = 0;
    for (auto& joining : joins) {
        try {
            nodes.push_back(joining.get());
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::unauthenticated) << error.what();
            ++refused;
        }
    }
    EXPECT_EQ(refused, 3);
    ASSERT_EQ(nodes.size(), 2U);
    expect_connected(nodes);
}

/// Relays datagrams between two endpoints.
class Relay {
public:
    explicit Relay(const Address& seed) : seed_(seed) {
        const quic::UdpOptions options{.gso = false, .gro = false};
        front_ = quic::UdpSocket::open(Address::parse("127.0.0.1:0").value(), options).value();
        thread_ = std::thread([this] { run(); });
    }
    ~Relay() {
        stop_ = true;
        thread_.join();
    }
    std::string address() const { return front_->local().text(); }
    int passed() const noexcept { return passed_; }

private:
    void run() {
        const quic::UdpOptions options{.gso = false, .gro = false};
        std::map<std::string, std::unique_ptr<quic::UdpSocket>> backs;
        std::map<std::string, Address> clients;
        const auto send = [&](quic::UdpSocket& socket, const Address& to,
                              std::span<const std::byte> bytes) {
            static_cast<void>(socket.send({.path = {.local = socket.local(), .remote = to},
                                           .bytes = bytes,
                                           .segment_bytes = bytes.size()}));
            ++passed_;
        };
        while (!stop_) {
            front_->receive(65536, [&](const quic::UdpSocket::Arrival& arrival) {
                auto& back = backs[arrival.path.remote.text()];
                if (!back) {
                    back = quic::UdpSocket::open(Address::parse("127.0.0.1:0").value(), options)
                               .value();
                }
                clients[arrival.path.remote.text()] = arrival.path.remote;
                send(*back, seed_, arrival.bytes);
            });
            for (auto& [client, back] : backs) {
                back->receive(65536, [&, &to = clients[client]](const auto& arrival) {
                    send(*front_, to, arrival.bytes);
                });
            }
            std::this_thread::yield();
        }
    }

    Address seed_;
    std::unique_ptr<quic::UdpSocket> front_;
    std::atomic<bool> stop_ = false;
    std::atomic<int> passed_ = 0;
    std::thread thread_;
};

TEST_F(Attack, a_man_in_the_middle_learns_nothing_at_first_contact) {
    // A relay cannot read or change anything: the join works.
    const Relay relay(address_of(seed_));
    JoinString join = parsed();
    join.seeds = {relay.address()};
    auto through = join_soon(join.text());
    auto direct = join_honestly();
    std::vector<Node> nodes;
    nodes.push_back(through.get());
    nodes.push_back(direct.get());
    EXPECT_GT(relay.passed(), 0);
    expect_connected(nodes);
    // To terminate the handshake itself, it would need the CA's key: see a_forged_seed_is_refused.
    // With a certificate of the same cluster it would be a member, not a seed: see
    // a_member_cannot_pose_as_the_seed.
}

TEST(JobSecretAttack, a_man_in_the_middle_cannot_relay_proofs) {
    SeedOptions options = seed_options(1);
    options.job_secret = "5f0c1d2e3b4a59687786a5b4c3d2e1f0";
    Seed seed(options);
    const auto secret = security::JobSecret::from_text(options.job_secret).value();
    // The victim proves the secret on its connection with the attacker; the attacker, who does not
    // know it, repeats the proof to the seed.
    Stranger victim;
    Stranger attacker;
    const Address at = Address::parse(seed.addresses().front()).value();
    const auto first = victim.dial_as_joiner(at);
    const auto second = attacker.dial_as_joiner(at);
    ASSERT_TRUE(victim.run_until([&] { return victim.story(first).link != nullptr; }));
    ASSERT_TRUE(attacker.run_until([&] { return attacker.story(second).link != nullptr; }));
    port::Link& link = *victim.story(first).link;
    Conversation honest(link);
    Conversation relayed(*attacker.story(second).link);
    const auto key = security::Certificate::from_der(link.peer_ca()).value().public_key().value();
    const auto proof = secret.proof(security::Role::client, honest.binding(), key);
    relayed.say(wire::Proof{proof});
    ASSERT_TRUE(attacker.run_until([&] { return attacker.story(second).down.has_value(); }));
    EXPECT_THAT(relayed.report.value().text, HasSubstr("does not know the secret"));
    honest.say(wire::Proof{proof});
    ASSERT_TRUE(victim.run_until([&] { return !honest.types.empty(); }));
    EXPECT_EQ(honest.types.front(), wire::FrameType::proof);
}

TEST_F(Attack, a_relayed_signing_request_is_refused) {
    // The attacker stole a token and the request of another connection.
    const JoinString join = parsed();
    Stranger victim;
    Stranger thief;
    const auto first = victim.dial_as_joiner(address_of(seed_), join.ca);
    const auto second = thief.dial_as_joiner(address_of(seed_), join.ca);
    ASSERT_TRUE(victim.run_until([&] { return victim.story(first).link != nullptr; }));
    ASSERT_TRUE(thief.run_until([&] { return thief.story(second).link != nullptr; }));
    const auto key = security::KeyPair::generate().value();
    Conversation honest(*victim.story(first).link);
    Conversation stolen(*thief.story(second).link);
    stolen.say(wire::Hello{});
    stolen.say(stolen.request(key, honest.binding(), &join));
    ASSERT_TRUE(thief.run_until([&] { return stolen.report.has_value(); }));
    EXPECT_EQ(stolen.report->code, Errc::unauthenticated);
    EXPECT_FALSE(stolen.admission);
    // The token is not spent: the seed admits the victim.
    honest.say(wire::Hello{});
    honest.say(honest.request(key, honest.binding(), &join));
    ASSERT_TRUE(victim.run_until([&] { return honest.admission.has_value(); }));
}

TEST_F(Attack, a_member_cannot_pose_as_the_seed) {
    // The certificate of a node, even of the right cluster, is not that of a seed: nodes refuse
    // joiners.
    auto first = join_honestly();
    auto second = join_honestly();
    std::vector<Node> nodes;
    nodes.push_back(first.get());
    nodes.push_back(second.get());
    JoinString join = parsed();
    const Address member = Address::parse(nodes[0].address()).value();
    join.seeds = {Address::parse("127.0.0.1:1").value().with_port(member.port()).text()};
    auto joining = join_soon(join.text(), {}, 3s);
    const Error error = failure_of(joining);
    EXPECT_THAT(error.code(), AnyOf(Errc::timed_out, Errc::version_mismatch)) << error.what();
    expect_connected(nodes);
}

TEST_F(Attack, a_certificate_of_another_cluster_is_refused) {
    const TestCluster other;
    Stranger stranger(other.node(1));
    const auto link = stranger.dial_anyone(address_of(seed_), other.id());
    ASSERT_TRUE(stranger.run_until([&] { return stranger.story(link).down.has_value(); }));
    EXPECT_EQ(stranger.story(link).down->code(), Errc::unauthenticated);
    expect_honest_nodes_join();
}

TEST_F(Attack, a_hello_of_a_gigabyte_is_refused) {
    Stranger stranger;
    const auto link = stranger.dial_as_joiner(address_of(seed_));
    ASSERT_TRUE(stranger.run_until([&] { return stranger.story(link).link != nullptr; }));
    // The preamble of the seed lane, and the header of a hello with a body of 2^30 bytes.
    const std::array<unsigned char, 16> bytes{0x8e, 'n', 'x', 'r', 1, 6, 0, 0,
                                              1,    1,   0,   0,   0, 0, 0, 0x40};
    const port::ConstBytes piece = std::as_bytes(std::span(bytes));
    ASSERT_TRUE(stranger.story(link).link->write(port::Lane::control, {&piece, 1}));
    ASSERT_TRUE(stranger.run_until([&] { return stranger.story(link).down.has_value(); }));
    EXPECT_THAT(stranger.story(link).down->what(), HasSubstr("the body of hello has 1073741824"));
    expect_honest_nodes_join();
}

TEST_F(Attack, a_thousand_silent_connections_do_not_keep_nodes_out) {
    std::atomic<std::int64_t> came = 0;
    const std::jthread crowd([&](const std::stop_token& stop) {
        Stranger stranger;
        std::vector<port::LinkId> links;
        while (!stop.stop_requested()) {
            if (links.size() < 1000) links.push_back(stranger.dial_as_joiner(address_of(seed_)));
            stranger.turn();
            came = std::ranges::count_if(
                links, [&](port::LinkId id) { return stranger.story(id).was_up; });
        }
    });
    await([&] { return came >= 100; }, "the links of the crowd do not come up");
    expect_honest_nodes_join();
}

TEST_F(Attack, garbage_datagrams_at_full_speed_do_not_keep_nodes_out) {
    std::atomic<std::uint64_t> sent = 0;
    const std::uint64_t number = std::random_device{}();
    std::printf("seed of the garbage: %llu\n", static_cast<unsigned long long>(number));
    const std::jthread flood([&](const std::stop_token& stop) {
        const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        const Address target = address_of(seed_);
        std::mt19937_64 random(number);
        std::array<std::uint64_t, 160> bytes{};
        while (!stop.stop_requested()) {
            for (auto& word : bytes) word = random();
            // Half of them look like the first packet of a client.
            if ((random() & 1U) != 0) {
                auto* raw = reinterpret_cast<unsigned char*>(bytes.data());
                raw[0] = static_cast<unsigned char>(0xc0U | (raw[0] & 0x3U));
                raw[1] = raw[2] = raw[3] = 0;
                raw[4] = 1;
                raw[5] = 8;
            }
            ::sendto(socket, bytes.data(), sizeof bytes, 0, target.native(), target.native_size());
            ++sent;
        }
        ::close(socket);
    });
    await([&] { return sent >= 10'000; }, "the flood does not begin");
    expect_honest_nodes_join();
}

}  // namespace
}  // namespace nexar::testing

#include "link/quic/udp_socket.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <fmt/format.h>

#include "support/quic_pair.hpp"
#include "unit/base/log_capture.hpp"

// Real sockets on loopback.
namespace nexar::quic {
namespace {

using nexar::testing::pattern;

struct Arrived {
    std::vector<std::byte> bytes;
    std::uint8_t ecn = 0;
    Path path;
};

struct Variant {
    std::string name;
    bool v6 = false;
    UdpOptions options;
};

class UdpSocketTest : public ::testing::TestWithParam<Variant> {
protected:
    static std::unique_ptr<UdpSocket> open(bool any = false) {
        const char* host =
            GetParam().v6 ? (any ? "[::]:0" : "[::1]:0") : (any ? "0.0.0.0:0" : "127.0.0.1:0");
        return std::move(UdpSocket::open(Address::parse(host).value(), GetParam().options)).value();
    }
    static void send(UdpSocket& from, const Address& to, std::span<const std::byte> bytes,
                     std::size_t segment, std::uint8_t ecn = 0) {
        const PacketBatch batch{.path = {.local = from.local(), .remote = to},
                                .bytes = bytes,
                                .segment_bytes = segment,
                                .ecn = ecn};
        while (from.send(batch) == PacketPath::Sent::blocked) {
            pollfd wait{.fd = from.descriptor(), .events = POLLOUT, .revents = 0};
            ASSERT_EQ(::poll(&wait, 1, 10'000), 1);
        }
    }
    /// Serves IPv4 and IPv6; the variant chooses which one sends.
    static std::unique_ptr<UdpSocket> open_for_both() {
        return std::move(UdpSocket::open(Address::any(true), GetParam().options)).value();
    }
    /// An address of `everywhere` in this variant's family: if possible not the one that the kernel
    /// would choose for an answer.
    static Address way_to(const UdpSocket& everywhere) {
        return Address::parse(GetParam().v6 ? "[::1]:0" : "127.0.0.2:0")
            .value()
            .with_port(everywhere.local().port());
    }
    /// Waits for `count` datagrams.
    static std::vector<Arrived> receive(UdpSocket& at, std::size_t count) {
        std::vector<Arrived> all;
        while (all.size() < count) {
            pollfd wait{.fd = at.descriptor(), .events = POLLIN, .revents = 0};
            if (::poll(&wait, 1, 10'000) != 1) break;
            at.receive(1 << 20, [&](const UdpSocket::Arrival& arrival) {
                for (auto rest = arrival.bytes; !rest.empty();) {
                    const auto one = rest.first(std::min(rest.size(), arrival.segment_bytes));
                    rest = rest.subspan(one.size());
                    all.push_back({.bytes = {one.begin(), one.end()},
                                   .ecn = arrival.ecn,
                                   .path = arrival.path});
                }
            });
        }
        return all;
    }

    LogCapture log_;  // warnings about small buffers
    std::unique_ptr<UdpSocket> a_ = open();
    std::unique_ptr<UdpSocket> b_ = open();
};

std::vector<Variant> variants() {
    std::vector<Variant> all;
    for (const bool v6 : {false, true}) {
        const std::string family = v6 ? "v6" : "v4";
        all.push_back({family + "_offload", v6, {}});
        all.push_back({family + "_batched", v6, {.gso = false, .gro = false}});
        all.push_back({family + "_plain", v6, {.gso = false, .gro = false, .batched = false}});
        all.push_back({family + "_gso_only", v6, {.gro = false}});
        all.push_back({family + "_gro_only", v6, {.gso = false}});
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(Variants, UdpSocketTest, ::testing::ValuesIn(variants()),
                         [](const auto& variant) { return variant.param.name; });

TEST_P(UdpSocketTest, datagrams_keep_their_boundaries) {
    const auto bytes = pattern(1, 40 * 1452 + 333);
    send(*a_, b_->local(), bytes, 1452);
    const auto got = receive(*b_, 41);
    ASSERT_EQ(got.size(), 41U);
    std::vector<std::byte> joined;
    for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].bytes.size(), i < 40 ? 1452U : 333U);
        EXPECT_EQ(got[i].path.remote, a_->local());
        joined.insert(joined.end(), got[i].bytes.begin(), got[i].bytes.end());
    }
    EXPECT_EQ(joined, bytes);
    EXPECT_EQ(a_->counts().datagrams_out, 41U);
    EXPECT_EQ(b_->counts().datagrams_in, 41U);
    if (GetParam().options.gso) {
        EXPECT_EQ(a_->counts().calls_out, 1U);
    }
}

TEST_P(UdpSocketTest, the_largest_datagram_passes) {
    const auto bytes = pattern(2, 65'000);
    send(*a_, b_->local(), bytes, 65'000);
    const auto got = receive(*b_, 1);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].bytes, bytes);
    EXPECT_EQ(a_->largest_datagram(b_->local()), 65'000U);
}

TEST_P(UdpSocketTest, a_datagram_that_is_too_large_is_counted_and_lost) {
    const auto bytes = pattern(2, 65'530);
    send(*a_, b_->local(), bytes, 65'530);
    send(*a_, b_->local(), pattern(3, 100), 100);
    const auto got = receive(*b_, 1);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].bytes.size(), 100U);
    EXPECT_EQ(a_->counts().too_large, 1U);
}

TEST_P(UdpSocketTest, a_closed_port_is_reported_and_does_not_disturb_other_datagrams) {
    const auto everywhere = open_for_both();
    for (UdpSocket* from : {a_.get(), everywhere.get()}) {
        const Address closed = open()->local();
        const auto lost = pattern(5, 3 * 1452);
        const auto bytes = pattern(6, 20 * 1452 + 77);
        std::vector<UdpSocket::Refusal> refusals;
        for (int round = 0; round < 20; ++round) {
            send(*from, closed, lost, 1452);
            send(*from, b_->local(), bytes, 1452);  // the pending refusal must not affect it
            const auto got = receive(*b_, 21);
            ASSERT_EQ(got.size(), 21U) << round;
            from->receive(1 << 20, [](const UdpSocket::Arrival&) {});
            from->take_refusals([&](const auto& refusal) { refusals.push_back(refusal); });
        }
        EXPECT_EQ(from->counts().lost_in_send, 0U);
        EXPECT_EQ(from->counts().gso_refused, 0U);
        ASSERT_FALSE(refusals.empty());
        for (const auto& refusal : refusals) {
            EXPECT_EQ(refusal.remote, closed);
            ASSERT_GE(refusal.bytes, 9U);
            const std::span quoted = std::span(refusal.quoted).first(refusal.bytes);
            EXPECT_TRUE(std::ranges::equal(quoted, std::span(lost).first(quoted.size())) ||
                        std::ranges::equal(quoted, std::span(lost).subspan(1452, quoted.size())) ||
                        std::ranges::equal(quoted, std::span(lost).subspan(2904, quoted.size())));
        }
        // The error queue must be empty: otherwise it would wake a loop that sleeps on the socket.
        pollfd wait{.fd = from->descriptor(), .events = POLLIN, .revents = 0};
        from->receive(1 << 20, [](const UdpSocket::Arrival&) {});
        EXPECT_EQ(::poll(&wait, 1, 0), 0);
    }
}

TEST_P(UdpSocketTest, ecn_marks_arrive) {
    const auto both = open_for_both();
    for (UdpSocket* from : {a_.get(), both.get()}) {
        for (std::uint8_t ecn = 0; ecn < 4; ++ecn) {
            send(*from, b_->local(), pattern(ecn, 3000), 1000, ecn);
            const auto got = receive(*b_, 3);
            ASSERT_EQ(got.size(), 3U);
            for (const Arrived& one : got) EXPECT_EQ(one.ecn, ecn);
        }
    }
}

TEST_P(UdpSocketTest, a_socket_bound_to_any_address_reports_where_datagrams_arrived) {
    const auto everywhere = open(true);
    const Address there = b_->local().with_port(everywhere->local().port());
    send(*a_, there, pattern(1, 50), 50);
    const auto got = receive(*everywhere, 1);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].path.local, there);
    // The answer comes from that address.
    const auto answer = pattern(2, 60);
    const PacketBatch batch{.path = got[0].path, .bytes = answer, .segment_bytes = 60};
    ASSERT_EQ(everywhere->send(batch), PacketPath::Sent::done);
    const auto back = receive(*a_, 1);
    ASSERT_EQ(back.size(), 1U);
    EXPECT_EQ(back[0].path.remote, there);
}

TEST_P(UdpSocketTest, a_dual_stack_socket_reports_each_address_in_its_own_family) {
    const auto both = open_for_both();
    const auto bytes = pattern(1, 10 * 1452 + 333);
    send(*a_, way_to(*both), bytes, 1452);
    const auto got = receive(*both, 11);
    ASSERT_EQ(got.size(), 11U);
    std::vector<std::byte> joined;
    for (const Arrived& one : got) {
        EXPECT_EQ(one.path.remote.text(), a_->local().text());
        EXPECT_EQ(one.path.local.text(), way_to(*both).text());
        joined.insert(joined.end(), one.bytes.begin(), one.bytes.end());
    }
    EXPECT_EQ(joined, bytes);
}

TEST_P(UdpSocketTest, a_dual_stack_socket_answers_from_the_address_that_was_reached) {
    const auto both = open_for_both();
    send(*a_, way_to(*both), pattern(1, 50), 50);
    const auto got = receive(*both, 1);
    ASSERT_EQ(got.size(), 1U);
    const auto answer = pattern(2, 4 * 1200 + 7);
    const PacketBatch batch{.path = got[0].path, .bytes = answer, .segment_bytes = 1200};
    ASSERT_EQ(both->send(batch), PacketPath::Sent::done);
    const auto back = receive(*a_, 5);
    ASSERT_EQ(back.size(), 5U);
    std::vector<std::byte> joined;
    for (const Arrived& one : back) {
        EXPECT_EQ(one.path.remote.text(), way_to(*both).text());
        joined.insert(joined.end(), one.bytes.begin(), one.bytes.end());
    }
    EXPECT_EQ(joined, answer);
    EXPECT_EQ(both->counts().lost_in_send, 0U);
    EXPECT_EQ(both->counts().gso_refused, 0U);
}

TEST_P(UdpSocketTest, a_dual_stack_socket_reads_and_sets_ecn_marks) {
    const auto both = open_for_both();
    for (std::uint8_t ecn = 0; ecn < 4; ++ecn) {
        send(*a_, way_to(*both), pattern(ecn, 3000), 1000, ecn);
        const auto got = receive(*both, 3);
        ASSERT_EQ(got.size(), 3U);
        for (const Arrived& one : got) EXPECT_EQ(one.ecn, ecn);

        const auto answer = pattern(ecn, 2000);
        const PacketBatch batch{
            .path = got[0].path, .bytes = answer, .segment_bytes = 1000, .ecn = ecn};
        ASSERT_EQ(both->send(batch), PacketPath::Sent::done);
        const auto back = receive(*a_, 2);
        ASSERT_EQ(back.size(), 2U);
        for (const Arrived& one : back) EXPECT_EQ(one.ecn, ecn);
    }
}

TEST_P(UdpSocketTest, a_dual_stack_socket_serves_both_families_at_once) {
    const auto both = open_for_both();
    const Address other_host = Address::parse(GetParam().v6 ? "127.0.0.1:0" : "[::1]:0").value();
    const auto other = std::move(UdpSocket::open(other_host, GetParam().options)).value();
    send(*a_, way_to(*both), pattern(1, 100), 100);
    send(*other, other_host.with_port(both->local().port()), pattern(2, 200), 200);
    send(*a_, way_to(*both), pattern(3, 300), 300);
    const auto got = receive(*both, 3);
    ASSERT_EQ(got.size(), 3U);
    for (const Arrived& one : got) {
        const bool of_other = one.bytes.size() == 200;
        EXPECT_EQ(one.path.remote, of_other ? other->local() : a_->local());
        EXPECT_EQ(one.path.local,
                  of_other ? other_host.with_port(both->local().port()) : way_to(*both));
    }
}

TEST_P(UdpSocketTest, a_dual_stack_socket_sends_to_either_family) {
    const auto both = open_for_both();
    send(*both, a_->local(), pattern(3, 2500), 1000);
    const auto got = receive(*a_, 3);
    ASSERT_EQ(got.size(), 3U);
    EXPECT_EQ(got[0].path.remote.port(), both->local().port());
    EXPECT_EQ(both->largest_datagram(a_->local()), 65'000U);
    send(*both, a_->local(), pattern(4, 65'530), 65'530);
    EXPECT_EQ(both->counts().too_large, 1U);
}

TEST_P(UdpSocketTest, sending_to_a_closed_port_is_not_an_error) {
    Address gone;
    {
        const auto closed = open();
        gone = closed->local();
    }
    for (int i = 0; i < 3; ++i) send(*a_, gone, pattern(1, 2000), 1000);
    send(*b_, a_->local(), pattern(2, 10), 10);
    EXPECT_EQ(receive(*a_, 1).size(), 1U);
}

TEST_P(UdpSocketTest, a_small_datagram_is_delivered_before_the_next_system_call) {
    for (std::uint64_t i = 0; i < 3; ++i) send(*a_, b_->local(), pattern(i, 100 + i), 1000);
    std::vector<std::size_t> sizes;
    const auto take = [&](const UdpSocket::Arrival& arrival) {
        sizes.push_back(arrival.bytes.size());
    };
    EXPECT_FALSE(b_->receive(1 << 20, take));
    // Without batches, reading them together is not cheaper.
    EXPECT_EQ(sizes.size(), GetParam().options.batched ? 1U : 3U);
    EXPECT_FALSE(b_->receive(1 << 20, take));
    EXPECT_EQ(sizes, (std::vector<std::size_t>{100, 101, 102}));
}

TEST_P(UdpSocketTest, receives_a_bounded_amount_at_once) {
    for (int i = 0; i < 40; ++i) send(*a_, b_->local(), pattern(7, 30'000), 30'000);
    std::size_t taken = 0;
    bool more = true;
    const auto take = [&](const UdpSocket::Arrival& arrival) { taken += arrival.bytes.size(); };
    pollfd wait{.fd = b_->descriptor(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&wait, 1, 10'000), 1);
    more = b_->receive(100'000, take);
    EXPECT_TRUE(more);
    EXPECT_LT(taken, 40U * 30'000);
}

TEST(UdpSocket, dual_stack_has_the_same_port_in_both_families) {
    LogCapture log;
    const auto both = UdpSocket::open(Address::any(true), {});
    ASSERT_TRUE(both) << both.error().what();
    const auto v4 = UdpSocket::open(Address::any(false).with_port((*both)->local().port()), {});
    ASSERT_FALSE(v4);
    EXPECT_EQ(v4.error().code(), Errc::bad_config);
}

TEST(UdpSocket, says_why_it_cannot_listen) {
    LogCapture log;
    const auto first = UdpSocket::open(Address::parse("127.0.0.1:0").value(), {});
    ASSERT_TRUE(first);
    const auto second = UdpSocket::open((*first)->local(), {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), Errc::bad_config);
    EXPECT_THAT(second.error().cause(), ::testing::HasSubstr((*first)->local().text()));
    EXPECT_FALSE(UdpSocket::open(Address::parse("192.0.2.1:0").value(), {}));
}

}  // namespace
}  // namespace nexar::quic

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <nexar/nexar.hpp>
#include <numeric>
#include <vector>

namespace nexar {
namespace {

using ::testing::HasSubstr;

std::vector<std::uint32_t> numbers(std::size_t count, std::uint32_t seed) {
    std::vector<std::uint32_t> values(count);
    std::iota(values.begin(), values.end(), seed * 1'000'003U);
    return values;
}

/// Three nodes shared by all tests that leave them unchanged.
class CommunicatorTest : public ::testing::Test {
protected:
    static void SetUpTestSuite() { shared_nodes = new std::vector<Node>(local_cluster(3)); }
    static void TearDownTestSuite() {
        delete shared_nodes;
        shared_nodes = nullptr;
    }
    static Communicator world(std::size_t rank) { return (*shared_nodes)[rank].world(); }

    static inline std::vector<Node>* shared_nodes = nullptr;
};

TEST_F(CommunicatorTest, knows_its_rank_and_size) {
    for (std::size_t rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(world(rank).rank(), static_cast<int>(rank));
        EXPECT_EQ(world(rank).size(), 3);
    }
}

TEST_F(CommunicatorTest, messages_of_all_sizes_arrive_whether_the_receive_is_posted_first_or_not) {
    for (const std::size_t count :
         {0U, 1U, 100U, 4096U, 4097U, 16384U, 16385U, 20'000U, 3'000'000U}) {
        for (const bool receive_first : {true, false}) {
            const auto sent = numbers(count, 7);
            std::vector<std::uint32_t> got(count + 5, 1);
            Work<Status> receive;
            if (receive_first) receive = world(1).recv(std::span(got), 0, 9);
            Work<> send = world(0).send(std::span(sent), 1, 9);
            if (!receive_first) receive = world(1).recv(std::span(got), any_source, any_tag);
            const Status status = receive.wait();
            send.wait();
            EXPECT_EQ(status, (Status{.source = 0, .tag = 9, .bytes = count * 4}));
            got.resize(count);
            EXPECT_EQ(got, sent) << count;
        }
    }
}

TEST_F(CommunicatorTest, a_message_to_the_own_rank_arrives) {
    for (const std::size_t count : {0U, 10U, 100'000U}) {
        const auto sent = numbers(count, 3);
        std::vector<std::uint32_t> got(count);
        auto send = world(2).send(std::span(sent), 2, 1);
        EXPECT_EQ(world(2).recv(std::span(got), 2, 1).wait().count<std::uint32_t>(), count);
        send.wait();
        EXPECT_EQ(got, sent);
    }
}

TEST_F(CommunicatorTest, small_and_large_messages_keep_their_order) {
    const std::vector<std::size_t> counts{100, 1'000'000, 3, 70'000, 4096, 500'000, 0, 1};
    std::vector<Work<>> sends;
    std::vector<std::vector<std::uint32_t>> sent;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        sent.push_back(numbers(counts[i], static_cast<std::uint32_t>(i)));
    }
    for (auto& values : sent) sends.push_back(world(0).send(std::span(values), 2, 5));
    for (std::size_t i = 0; i < counts.size(); ++i) {
        std::vector<std::uint32_t> got(counts[i]);
        EXPECT_EQ(world(2).recv(std::span(got), 0, 5).wait().bytes, counts[i] * 4);
        EXPECT_EQ(got, sent[i]);
    }
    wait_all(std::span(sends));
}

Errc code_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        EXPECT_THAT(error.cause(), HasSubstr("the tag -1 is negative"));
        return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

TEST_F(CommunicatorTest, negative_tags_are_rejected_by_the_call) {
    Communicator own = world(0);
    std::array<int, 1> value{};
    const std::span span(value);
    const int wrong = -1;
    const auto expect_refused = [](const std::function<void()>& call) {
        EXPECT_EQ(code_of(call), Errc::invalid_argument);
    };
    expect_refused([&] { own.send(span, 0, wrong).wait(); });
    expect_refused([&] { own.send(const_buffer(span), 0, std::int64_t{-1}).wait(); });
    expect_refused([&] { own.send_iov({}, 0, wrong).wait(); });
    expect_refused([&] { own.recv(span, 0, wrong).wait(); });
    expect_refused([&] { own.recv_iov({}, any_source, wrong).wait(); });
    expect_refused([&] { own.send_recv(span, 0, span, 0, wrong).wait(); });
    expect_refused([&] { own.probe(any_source, wrong).wait(); });
    expect_refused([&] { static_cast<void>(own.try_probe(0, std::int8_t{-1})); });
    expect_refused([&] { static_cast<void>(own.matched_probe(0, wrong).wait()); });
    expect_refused([&] { static_cast<void>(own.try_matched_probe(0, wrong)); });
    expect_refused([&] { static_cast<void>(own.prepare_send(span, 0, wrong)); });
    expect_refused([&] { static_cast<void>(own.prepare_recv(span, 0, wrong)); });
}

enum HaloTag { to_left = 3, to_right = 4 };

TEST_F(CommunicatorTest, any_non_negative_number_is_a_valid_tag) {
    static_assert(TagValue(7).tag() == Tag(7));
    static_assert(TagPattern(to_right).tag() == Tag(4));
    static_assert(!TagPattern(any_tag).tag());
    static_assert(!std::is_convertible_v<bool, TagValue> &&
                  !std::is_convertible_v<double, TagValue>);
    Communicator own = world(0);
    const std::array<int, 1> value{17};
    const auto send_and_receive = [&](TagValue tag, TagPattern pattern) {
        std::array<int, 1> got{};
        own.send(std::span(value), 0, tag).wait();
        const Status status = own.recv(std::span(got), 0, pattern).wait();
        EXPECT_EQ(status.tag, tag.tag().value());
        EXPECT_EQ(got, value);
    };
    send_and_receive(0, 0);
    send_and_receive(7, std::uint64_t{7});
    send_and_receive(std::uint64_t{1} << 40U, std::int64_t{1} << 40U);
    send_and_receive(~std::uint64_t{0}, ~std::uint64_t{0});
    send_and_receive(to_left, any_tag);
    send_and_receive(Tag(5), std::uint8_t{5});
    send_and_receive({}, Tag(0));
}

TEST_F(CommunicatorTest, a_message_larger_than_the_buffer_is_truncated_and_consumed) {
    for (const std::size_t count : {10U, 100'000U}) {
        const auto sent = numbers(count, 1);
        auto send = world(0).send(std::span(sent), 1, 3);
        std::vector<std::uint32_t> got(count - 1);
        const auto outcome = world(1).recv(std::span(got), 0, 3).result();
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().code(), Errc::truncated);
        EXPECT_THAT(outcome.error().what(), HasSubstr(std::to_string(count * 4)));
        EXPECT_THAT(outcome.error().what(), HasSubstr(std::to_string(count * 4 - 4)));
        send.wait();
        EXPECT_FALSE(world(1).try_probe(0, 3));
    }
}

TEST_F(CommunicatorTest, a_probe_leaves_the_message_and_a_matched_probe_takes_it) {
    const auto sent = numbers(50'000, 1);
    auto send = world(0).send(std::span(sent), 1, 4);
    const Status found = world(1).probe(any_source, 4).wait();
    EXPECT_EQ(found.count<std::uint32_t>(), sent.size());
    Message message = world(1).matched_probe(0, any_tag).wait();
    EXPECT_FALSE(world(1).try_probe());
    std::vector<std::uint32_t> got(message.status().count<std::uint32_t>());
    EXPECT_EQ(std::move(message).recv(std::span(got)).wait(), found);
    EXPECT_EQ(got, sent);
    send.wait();
}

TEST_F(CommunicatorTest, a_synchronous_send_completes_only_once_it_is_matched) {
    for (const std::size_t count : {0U, 10U, 10'000U}) {
        const auto sent = numbers(count, 1);
        auto send = world(0).send(std::span(sent), 1, 6, {.synchronous = true});
        world(1).probe(0, 6).wait();
        EXPECT_FALSE(send.wait_for(std::chrono::milliseconds(20)));
        std::vector<std::uint32_t> got(count);
        world(1).recv(std::span(got), 0, 6).wait();
        send.wait();
        EXPECT_EQ(got, sent);
    }
}

TEST_F(CommunicatorTest, the_message_of_a_cancelled_receive_goes_to_the_next_receive) {
    std::vector<int> first(4);
    std::vector<int> second(4);
    auto cancelled = world(1).recv(std::span(first), 0, 8);
    cancelled.cancel();
    EXPECT_EQ(cancelled.result().error().code(), Errc::cancelled);
    const std::vector<int> sent{1, 2, 3, 4};
    world(0).send(std::span(sent), 1, 8).wait();
    world(1).recv(std::span(second), 0, 8).wait();
    EXPECT_EQ(second, sent);
    EXPECT_EQ(first, std::vector<int>(4));
}

TEST_F(CommunicatorTest, a_large_send_can_be_cancelled_without_blocking_later_messages) {
    std::vector<std::byte> sent(std::size_t{64} << 20U);
    auto send =
        world(0).send(std::span(reinterpret_cast<std::uint8_t*>(sent.data()), sent.size()), 1, 2);
    world(1).probe(0, 2).wait();
    send.cancel();
    const auto outcome = send.result();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code(), Errc::cancelled);
    // The next message with this tag arrives.
    const std::vector<int> next{5, 6};
    std::vector<int> got(2);
    auto after = world(0).send(std::span(next), 1, 2);
    auto receive = world(1).recv(std::span(got), 0, 2);
    const auto received = receive.result();
    if (!received) {  // the receive was posted before the cancellation arrived
        EXPECT_EQ(received.error().code(), Errc::truncated);
        world(1).recv(std::span(got), 0, 2).wait();
    }
    after.wait();
    EXPECT_EQ(got, next);
}

TEST_F(CommunicatorTest, regions_of_any_size_form_one_message) {
    auto values = numbers(100'000, 5);
    const auto bytes = std::as_writable_bytes(std::span(values));
    std::vector<ConstRegion> out;
    for (std::size_t at = 0, step = 1; at < bytes.size(); at += step, step = step * 3 % 7919 + 1) {
        step = std::min(step, bytes.size() - at);
        out.push_back(bytes.subspan(at, step));
    }
    std::vector<std::uint32_t> got(values.size());
    const auto place = std::as_writable_bytes(std::span(got));
    std::vector<Region> in;
    for (std::size_t at = 0, step = 5; at < place.size(); at += step, step = step * 5 % 10007 + 1) {
        step = std::min(step, place.size() - at);
        in.push_back(place.subspan(at, step));
    }
    auto send = world(0).send_iov(out, 1, 11);
    EXPECT_EQ(world(1).recv_iov(in, 0, 11).wait().bytes, bytes.size());
    send.wait();
    EXPECT_EQ(got, values);
}

TEST_F(CommunicatorTest, a_duplicate_has_its_own_messages) {
    Communicator a = world(0).duplicate();
    const std::vector<int> first{1};
    const std::vector<int> second{2};
    // Sent before the receiver has created its duplicate.
    a.send(std::span(first), 1, 1).wait();
    world(0).send(std::span(second), 1, 1).wait();
    std::vector<int> got(1);
    world(1).recv(std::span(got), 0, 1).wait();
    EXPECT_EQ(got, second);
    Communicator b = world(1).duplicate();
    world(2).duplicate();
    b.recv(std::span(got), 0, 1).wait();
    EXPECT_EQ(got, first);
}

TEST_F(CommunicatorTest, dropping_a_duplicate_discards_its_unreceived_messages) {
    const std::vector<std::byte> content(8'000, std::byte{5});
    const std::span sent(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
    // Together far more than the credit for unreceived messages.
    for (int i = 0; i < 500; ++i) {
        Communicator a = world(0).duplicate();
        world(1).duplicate();
        world(2).duplicate();
        a.send(sent, 1, 1).wait();
    }
    std::vector<std::uint8_t> got(sent.size());
    Work<Status> received = world(1).recv(std::span(got), 0, 2);
    world(0).send(sent, 1, 2).wait();
    EXPECT_EQ(received.wait().bytes, sent.size());
}

TEST_F(CommunicatorTest, a_rank_may_create_duplicates_far_ahead_of_another) {
    constexpr int kAhead = 600;
    std::vector<Communicator> made;
    for (int i = 0; i < kAhead; ++i) {
        made.push_back(world(0).duplicate());
        const std::vector<int> sent{i};
        made.back().send(std::span(sent), 1, 1).wait();
    }
    for (int i = 0; i < kAhead; ++i) {
        Communicator other = world(1).duplicate();
        std::vector<int> got(1);
        other.recv(std::span(got), 0, 1).wait();
        EXPECT_EQ(got[0], i);
    }
}

TEST_F(CommunicatorTest, a_work_keeps_its_communicator_alive) {
    std::vector<int> got(1);
    Work<Status> received = world(1).duplicate().recv(std::span(got), 0, 1);
    world(2).duplicate();
    const std::vector<int> sent{9};
    world(0).duplicate().send(std::span(sent), 1, 1).wait();
    received.wait();
    EXPECT_EQ(got, sent);
}

TEST_F(CommunicatorTest, send_recv_exchanges_messages) {
    std::vector<int> from0{10, 11};
    std::vector<int> from1{20, 21};
    std::vector<int> at0(2);
    std::vector<int> at1(2);
    auto one = world(1).send_recv(std::span(from1), 0, std::span(at1), 0);
    EXPECT_EQ(world(0).send_recv(std::span(from0), 1, std::span(at0), 1).wait().source, 1);
    one.wait();
    EXPECT_EQ(at0, from1);
    EXPECT_EQ(at1, from0);
}

TEST_F(CommunicatorTest, the_error_names_a_rank_that_does_not_exist) {
    std::vector<int> values(1);
    try {
        world(0).send(std::span(values), 3).wait();
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::invalid_argument);
        EXPECT_THAT(error.what(), HasSubstr("no rank 3 in a communicator of 3"));
    }
    EXPECT_THROW(world(0).recv(std::span(values), -1).wait(), Error);
}

TEST(Node, fails_pending_operations_when_it_or_its_peer_closes) {
    auto nodes = local_cluster(2);
    std::vector<int> values(1);
    Communicator world0 = nodes[0].world();
    Communicator world1 = nodes[1].world();
    auto own = world0.recv(std::span(values), 1, 1);
    std::vector<int> other(1);
    auto peers = world1.recv(std::span(other), 0, 1);
    nodes[0].close();
    EXPECT_EQ(own.result().error().code(), Errc::closed);
    EXPECT_EQ(peers.result().error().code(), Errc::link_closed);
    EXPECT_EQ(world1.recv(std::span(other), 0, 1).result().error().code(), Errc::link_closed);
    EXPECT_EQ(world1.send(std::span(other), 0, 1).result().error().code(), Errc::link_closed);
}

TEST(Node, completed_sends_arrive_although_the_sender_has_closed) {
    auto nodes = local_cluster(2);
    const auto small = numbers(100, 1);
    const auto large = numbers(15'000, 2);
    nodes[0].world().send(std::span(small), 1, 1).wait();
    nodes[0].world().send(std::span(large), 1, 2).wait();
    nodes[0].close();
    Communicator world = nodes[1].world();
    std::vector<std::uint32_t> got(large.size());
    world.recv(std::span(got), 0, 2).wait();
    EXPECT_EQ(got, large);
    got.resize(small.size());
    world.recv(std::span(got), 0, 1).wait();
    EXPECT_EQ(got, small);
}

}  // namespace
}  // namespace nexar

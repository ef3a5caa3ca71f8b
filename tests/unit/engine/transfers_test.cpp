#include "engine/transfers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/peer.hpp"
#include "support/fake_link.hpp"
#include "support/link_end.hpp"
#include "support/said.hpp"

namespace nexar::engine {
namespace {

using nexar::testing::operator+;
using nexar::testing::FakeLink;
using nexar::testing::frames_of;
using nexar::testing::pattern;
using nexar::testing::said;
using nexar::testing::stream_of;
using port::Lane;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = nexar::testing::Bytes;

constexpr TransferName kName{.kind = TransferKind::message, .context = ContextId(3), .number = 9};

/// Takes everything, or nothing while it is not ready.
class Receiver final : public PayloadReceiver {
public:
    explicit Receiver(std::uint64_t size) { bytes = size; }

    std::size_t write(std::uint64_t offset, port::ConstBytes from) noexcept override {
        EXPECT_EQ(offset, content.size());
        if (!ready) return 0;
        content.insert(content.end(), from.begin(), from.end());
        return from.size();
    }
    void attached() override { log.emplace_back("attached"); }
    void finished(std::uint64_t came) override {
        EXPECT_EQ(stream, nullptr);
        log.push_back("finished " + std::to_string(came));
    }
    void aborted() override {
        EXPECT_EQ(stream, nullptr);
        log.emplace_back("aborted");
    }
    bool outlives_link() const noexcept override { return outlives; }

    Bytes content{};
    bool ready = true;
    bool outlives = false;
    std::vector<std::string> log{};
};

class Sent final : public OutStream {
public:
    std::uint64_t size() const noexcept override { return shown.size(); }
    std::span<const port::ConstBytes> regions() const noexcept override { return {&shown, 1}; }
    void released(port::SendOutcome outcome) override {
        EXPECT_FALSE(sending());
        outcomes.push_back(outcome);
    }

    Bytes memory = pattern(4, 50);
    port::ConstBytes shown{memory};
    std::vector<port::SendOutcome> outcomes{};
};

class TransfersTest : public ::testing::Test, public Transfers::Owner {
protected:
    TransfersTest() {
        transfers().connect(link_, nullptr);
        link_.arrive(Lane::eager, said(wire::Preamble{.lane = wire::Lane::eager}));
    }

    Result<LanePayload> on_frame(Peer& peer, const wire::FrameHeader& header,
                                 port::ConstBytes /*body*/) override {
        EXPECT_EQ(&peer, &peer_);
        frames_.push_back(header.type);
        return on_lane_;
    }
    Result<Awaited> look_up(Peer& peer, const TransferName& name) override {
        EXPECT_EQ(&peer, &peer_);
        EXPECT_EQ(name, kName);
        return awaited_;
    }
    void on_writable(Peer& /*peer*/, Lane lane) override { writable_.push_back(lane); }
    void on_down(Peer& /*peer*/, const Error& reason) override {
        EXPECT_FALSE(transfers().up());
        downs_.push_back(reason.cause());
    }

    PeerTransfers& transfers() { return peer_.transfers; }
    void pump() {
        while (const auto event = link_.poll_event()) all_.handle(*event);
    }
    port::StreamId opens(const Bytes& bytes) {
        const port::StreamId stream = link_.open();
        pump();
        link_.arrive(stream, bytes);
        pump();
        return stream;
    }
    void expect_disconnected(std::string_view rule) {
        ASSERT_TRUE(transfers().violation());
        EXPECT_THAT(transfers().violation()->cause(), HasSubstr(rule));
        EXPECT_TRUE(link_.closed());
        EXPECT_TRUE(transfers().up()) << "the link stays up until it reports Down";
        EXPECT_FALSE(transfers().usable());
    }
    void goes_down(std::vector<port::Rest> rests = {}) {
        all_.handle({.link = link_.id(),
                     .what = port::Down{.reason = Error(Errc::link_closed, "gone"),
                                        .rests = std::move(rests)}});
    }

    Transfers all_{*this, {.max_backlog = {3, 3, 3}}};
    Peer peer_{all_, NodeId(), Amount{}};
    FakeLink link_{port::LinkId(1), {}};
    Receiver receiver_{20};
    Awaited awaited_{};
    LanePayload on_lane_{};
    std::vector<wire::FrameType> frames_;
    std::vector<Lane> writable_;
    std::vector<std::string> downs_;
};

TEST_F(TransfersTest, uses_a_further_link_when_the_peer_has_it_too) {
    FakeLink faster{port::LinkId(2), {}};
    faster.pace = {.latency = std::chrono::microseconds(1), .bytes_per_second = 1e10};
    transfers().connect(faster);
    EXPECT_TRUE(faster.reads(Lane::eager));
    const std::size_t before = link_.written(Lane::eager).size();
    EXPECT_TRUE(transfers().write_message(Lane::eager, wire::ContextEnd{}));
    Sent first;
    transfers().send(first, kName, port::Priority::bulk);
    EXPECT_GT(link_.written(Lane::eager).size(), before);
    EXPECT_EQ(link_.outgoing().size(), 1U);
    EXPECT_TRUE(faster.written(Lane::eager).empty());

    EXPECT_TRUE(transfers().use(faster.id()));
    EXPECT_TRUE(transfers().write_message(Lane::eager, wire::ContextEnd{}));
    Sent second;
    transfers().send(second, kName, port::Priority::bulk);
    EXPECT_FALSE(faster.written(Lane::eager).empty());
    EXPECT_EQ(faster.outgoing().size(), 1U);
    EXPECT_FALSE(transfers().use(port::LinkId(3))) << "there is no such link";
}

TEST_F(TransfersTest, uses_a_further_link_at_once_if_it_is_the_last_one) {
    FakeLink further{port::LinkId(2), {}};
    transfers().connect(further);
    goes_down();
    EXPECT_TRUE(transfers().write_message(Lane::eager, wire::ContextEnd{}));
    EXPECT_FALSE(further.written(Lane::eager).empty());
    EXPECT_TRUE(downs_.empty());
}

TEST_F(TransfersTest, a_payload_is_complete_when_only_the_end_of_its_stream_is_missing) {
    awaited_ = {.state = Awaited::State::known, .receiver = &receiver_};
    opens(stream_of(ContextId(3), 9) + pattern(2, 20));
    FakeLink further{port::LinkId(2), {}};
    transfers().connect(further);
    goes_down();
    EXPECT_THAT(receiver_.log, ElementsAre("attached", "finished 20"));
}

TEST_F(TransfersTest, refuses_to_receive_a_payload_again_that_has_arrived) {
    awaited_ = {.state = Awaited::State::known, .receiver = &receiver_};
    opens(stream_of(ContextId(3), 9) + pattern(2, 20));
    FakeLink further{port::LinkId(2), {}};
    transfers().connect(further);
    const auto pump_further = [&] {
        while (const auto event = further.poll_event()) all_.handle(*event);
    };
    const port::StreamId again = further.open();
    pump_further();
    further.arrive(again, said(wire::Preamble{.lane = wire::Lane::bulk,
                                              .attempt = 1,
                                              .context = ContextId(3),
                                              .sequence = Sequence(9)}));
    pump_further();
    EXPECT_EQ(further.incoming(), 0U) << "the sender counts it as delivered";
    EXPECT_FALSE(transfers().violation());
    goes_down();
    EXPECT_THAT(receiver_.log, ElementsAre("attached", "finished 20"));
}

TEST_F(TransfersTest, keeps_frames_in_order_while_a_lane_is_full) {
    const auto credit = [](std::uint32_t headers) { return wire::Credit{.headers = headers}; };
    transfers().say_message(Lane::control, credit(1));
    link_.set_room(Lane::control, 0);
    transfers().say_message(Lane::control, credit(2));
    transfers().say_message(Lane::control, credit(3));
    EXPECT_TRUE(transfers().full(Lane::control));
    EXPECT_FALSE(transfers().full(Lane::eager));
    EXPECT_EQ(transfers().backlog(Lane::control), 2U);
    EXPECT_EQ(transfers().backlog_bytes(Lane::control), 2 * wire::to_bytes(credit(2)).size());
    EXPECT_FALSE(transfers().write(Lane::control, said(credit(4)))) << "it would overtake them";
    link_.set_room(Lane::control, 100'000);
    pump();
    EXPECT_THAT(writable_, ElementsAre(Lane::control));
    EXPECT_EQ(transfers().backlog(Lane::control), 0U);
    EXPECT_EQ(transfers().backlog_bytes(Lane::control), 0U);
    std::vector<std::uint32_t> headers;
    for (const auto& one : frames_of<wire::Credit>(link_.written(Lane::control))) {
        headers.push_back(one.headers);
    }
    EXPECT_THAT(headers, ElementsAre(1U, 2U, 3U));
}

TEST_F(TransfersTest, disconnects_a_peer_that_does_not_read) {
    link_.set_room(Lane::rpc, 0);
    for (int i = 0; i < 3; ++i) transfers().say_message(Lane::rpc, wire::Cancel{});
    EXPECT_FALSE(transfers().violation());
    transfers().say_message(Lane::rpc, wire::Cancel{});
    expect_disconnected("the peer does not read what this node sends");
    transfers().say_message(Lane::rpc, wire::Cancel{});
    EXPECT_EQ(transfers().backlog(Lane::rpc), 4U)
        << "the engine queues nothing for a disconnected peer";
}

TEST_F(TransfersTest, delivers_a_payload_on_a_lane_to_its_receiver) {
    on_lane_ = {.bytes = 20, .receiver = &receiver_};
    const Bytes frame = said(wire::EagerHeader{});
    link_.arrive(Lane::eager, frame + pattern(1, 15));
    EXPECT_TRUE(receiver_.log.empty());
    on_lane_ = {};
    link_.arrive(Lane::eager, pattern(1, 5) + frame);
    EXPECT_THAT(receiver_.log, ElementsAre("finished 20"));
    EXPECT_EQ(receiver_.content, pattern(1, 15) + pattern(1, 5));
    EXPECT_EQ(frames_.size(), 2U);
}

TEST_F(TransfersTest, drops_the_rest_of_a_lane_payload_whose_receiver_is_gone) {
    on_lane_ = {.bytes = 20, .receiver = &receiver_};
    const Bytes frame = said(wire::EagerHeader{});
    link_.arrive(Lane::eager, frame + pattern(1, 15));
    transfers().skip(Lane::rpc, receiver_);
    transfers().skip(Lane::eager, receiver_);
    on_lane_ = {};
    link_.arrive(Lane::eager, pattern(1, 5) + frame);
    EXPECT_TRUE(receiver_.log.empty());
    EXPECT_EQ(receiver_.content.size(), 15U);
    EXPECT_EQ(frames_.size(), 2U);
}

TEST_F(TransfersTest, attaches_a_stream_to_the_receiver_that_waits_for_it) {
    awaited_ = {.state = Awaited::State::known, .receiver = &receiver_};
    const auto stream = opens(stream_of(ContextId(3), 9) + pattern(2, 20));
    EXPECT_THAT(receiver_.log, ElementsAre("attached"));
    EXPECT_EQ(receiver_.content, pattern(2, 20));
    link_.finish(stream);
    pump();
    EXPECT_THAT(receiver_.log, ElementsAre("attached", "finished 20"));
}

TEST_F(TransfersTest, keeps_a_stream_until_its_header_arrives) {
    const auto stream = opens(stream_of(ContextId(3), 9) + pattern(2, 20));
    EXPECT_TRUE(transfers().is_early(kName));
    transfers().expect({.kind = TransferKind::collective, .context = ContextId(3), .number = 9},
                       receiver_);
    EXPECT_TRUE(receiver_.log.empty()) << "the receiver expects another payload";
    transfers().expect(kName, receiver_);
    ASSERT_NE(receiver_.stream, nullptr);
    EXPECT_FALSE(transfers().has_early());
    receiver_.stream->open();
    link_.finish(stream);
    pump();
    EXPECT_THAT(receiver_.log, ElementsAre("attached", "finished 20"));
    EXPECT_EQ(receiver_.content, pattern(2, 20));
}

TEST_F(TransfersTest, forgets_an_early_stream_that_its_sender_resets) {
    const auto stream = opens(stream_of(ContextId(3), 9));
    link_.reset(stream);
    pump();
    EXPECT_FALSE(transfers().has_early());
    EXPECT_FALSE(transfers().violation());
}

TEST_F(TransfersTest, refuses_early_streams_of_an_ended_communicator) {
    opens(stream_of(ContextId(3), 9));
    transfers().refuse_early(TransferKind::message, ContextId(4));
    transfers().refuse_early(TransferKind::collective, ContextId(3));
    EXPECT_TRUE(transfers().is_early(kName));
    EXPECT_EQ(link_.incoming(), 1U);
    transfers().refuse_early(TransferKind::message, ContextId(3));
    EXPECT_FALSE(transfers().has_early());
    pump();
    EXPECT_EQ(link_.incoming(), 0U);
    EXPECT_FALSE(transfers().violation());
}

TEST_F(TransfersTest, refuses_a_stream_whose_transfer_is_over) {
    awaited_ = {.state = Awaited::State::over};
    opens(stream_of(ContextId(3), 9) + pattern(2, 20));
    EXPECT_EQ(link_.incoming(), 0U);
    EXPECT_FALSE(transfers().violation());
}

TEST_F(TransfersTest, disconnects_a_peer_that_sends_a_payload_twice) {
    opens(stream_of(ContextId(3), 9));
    opens(stream_of(ContextId(3), 9));
    expect_disconnected("the peer sent the payload of one message twice");
}

TEST_F(TransfersTest, disconnects_a_peer_whose_stream_ends_without_a_header) {
    const auto stream = opens(stream_of(ContextId(3), 9));
    link_.finish(stream);
    pump();
    expect_disconnected("the peer ended a payload stream before it sent the header");
}

TEST_F(TransfersTest, detaches_a_receiver_that_rejects_its_stream) {
    awaited_ = {.state = Awaited::State::known, .receiver = &receiver_};
    opens(stream_of(ContextId(3), 9));
    receiver_.reject();
    EXPECT_EQ(receiver_.stream, nullptr);
    pump();
    EXPECT_THAT(receiver_.log, ElementsAre("attached")) << "the receiver gets no further calls";
    EXPECT_EQ(link_.incoming(), 0U);
}

TEST_F(TransfersTest, notifies_a_sender_once_when_its_memory_is_released) {
    Sent sent;
    sent.cancel();  // has no effect before it is sent
    transfers().send(sent, kName, port::Priority::bulk);
    EXPECT_TRUE(sent.sending());
    ASSERT_EQ(link_.outgoing().size(), 1U);
    EXPECT_EQ(link_.outgoing().begin()->second.prefix, stream_of(ContextId(3), 9));
    link_.release(port::StreamId(link_.outgoing().begin()->first), port::SendOutcome::refused);
    pump();
    EXPECT_THAT(sent.outcomes, ElementsAre(port::SendOutcome::refused));
    transfers().send(sent, kName, port::Priority::bulk);
    sent.cancel();
    pump();
    EXPECT_THAT(sent.outcomes,
                ElementsAre(port::SendOutcome::refused, port::SendOutcome::cancelled));
}

TEST_F(TransfersTest, detaches_receivers_when_the_link_goes_down) {
    awaited_ = {.state = Awaited::State::known, .receiver = &receiver_};
    const auto stream = opens(stream_of(ContextId(3), 9) + pattern(2, 5));
    goes_down({{.stream = stream, .offset = wire::kBulkPreambleBytes + 5, .bytes = Bytes(15)}});
    EXPECT_EQ(receiver_.stream, nullptr);
    EXPECT_THAT(receiver_.log, ElementsAre("attached")) << "its owner must end it";
    EXPECT_THAT(downs_, ElementsAre("gone"));
    transfers().say_message(Lane::control, wire::Credit{});
    EXPECT_EQ(transfers().backlog(Lane::control), 0U);
}

TEST_F(TransfersTest, delivers_a_payload_that_arrived_whole_before_the_link_went_down) {
    awaited_ = {.state = Awaited::State::known, .receiver = &receiver_};
    receiver_.ready = false;
    receiver_.outlives = true;
    const auto stream = opens(stream_of(ContextId(3), 9) + pattern(2, 20));
    EXPECT_TRUE(receiver_.content.empty());
    goes_down({{.stream = stream, .offset = wire::kBulkPreambleBytes, .bytes = pattern(2, 20)}});
    ASSERT_NE(receiver_.stream, nullptr);
    EXPECT_TRUE(receiver_.stream->has_rest());
    receiver_.ready = true;
    receiver_.stream->open();
    EXPECT_TRUE(receiver_.content.empty()) << "not within a call of the receiver";
    all_.offer_rests();
    EXPECT_EQ(receiver_.content, pattern(2, 20));
    EXPECT_THAT(receiver_.log, ElementsAre("attached", "finished 20"));
}

TEST_F(TransfersTest, aborts_a_refused_payload_that_outlives_its_link) {
    awaited_ = {.state = Awaited::State::known, .receiver = &receiver_};
    receiver_.ready = false;
    receiver_.outlives = true;
    const auto stream = opens(stream_of(ContextId(3), 9) + pattern(2, 20));
    goes_down({{.stream = stream, .offset = wire::kBulkPreambleBytes, .bytes = pattern(2, 20)}});
    ASSERT_NE(receiver_.stream, nullptr);
    receiver_.stream->refuse();
    all_.offer_rests();
    EXPECT_THAT(receiver_.log, ElementsAre("attached", "aborted"));
}

}  // namespace
}  // namespace nexar::engine

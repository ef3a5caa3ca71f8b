#include "engine/recording.hpp"

#include "calls.hpp"

namespace nexar::engine {
namespace {

/// A base of the fixture, because the recorder must outlive the engine.
struct WithRecorder {
    explicit WithRecorder(std::size_t events) : recorder_({.events_per_thread = events}) {}

    Recorder recorder_;
};

EngineOptions recorded(Recorder& recorder) {
    EngineOptions options = call_options();
    options.recorder = &recorder;
    return options;
}

class RecordingTest : public WithRecorder, public CallsTest {
protected:
    explicit RecordingTest(std::size_t events = 1024)
        : WithRecorder(events), CallsTest(recorded(recorder_)) {
        engine_->advance(now_);
        seen_ = recorder_.snapshot().events.size();
    }

    /// The events since the last call.
    std::vector<RecordedEvent> events() {
        std::vector<RecordedEvent> made;
        const auto snapshot = recorder_.snapshot();
        for (std::size_t i = seen_; i < snapshot.events.size(); ++i) {
            made.push_back(snapshot.events[i].event);
            EXPECT_EQ(made.back().time, now_) << "events carry the time of the engine";
        }
        seen_ = snapshot.events.size();
        return made;
    }

    /// An event in the world, which is the first communicator.
    RecordedEvent event(EventKind kind, std::uint32_t b, std::uint64_t c, std::uint64_t d) const {
        return {.time = now_, .kind = kind, .a = 0, .b = b, .c = c, .d = d};
    }
    static std::uint32_t failed(std::uint32_t subject, Errc code) {
        return event_word(subject, static_cast<std::uint16_t>(code));
    }
    static std::uint32_t waits(std::uint32_t subject, WaitReason reason) {
        return event_word(subject, static_cast<std::uint16_t>(reason));
    }
    /// An event of the link to the peer whose node id ends in `number`.
    RecordedEvent link(EventKind kind, std::uint8_t number, Errc reason = {}) const {
        return {.time = now_,
                .kind = kind,
                .a = static_cast<std::uint16_t>(reason),
                .c = 0,
                .d = number};
    }

    std::size_t seen_ = 0;
};

using Events = std::vector<RecordedEvent>;

TEST_F(RecordingTest, records_a_message_and_its_receive) {
    receive(kHostile, 5, 100);
    EXPECT_EQ(events(), (Events{event(EventKind::receive_started, 1, 5, 100)}));
    pass(3ms);
    says(Lane::eager, eager(header(0, 5, 64)));
    EXPECT_EQ(events(), (Events{event(EventKind::message_matched, 1, 5, 64),
                                event(EventKind::receive_ended, 1, 5, 64)}));
}

TEST_F(RecordingTest, records_a_wildcard_receive_with_the_message_that_it_matched) {
    Asked& asked = asked_.emplace_back(100);
    asked.receive.owner = &asked;
    asked.receive.content = {&asked.region, 1};
    says(Lane::eager, eager(header(0, 8, 20)));
    EXPECT_EQ(events(), Events{}) << "an unexpected message is not an operation";
    engine_->start(*world_, asked.receive);
    EXPECT_EQ(events(), (Events{event(EventKind::receive_started, kAnyRank, kAnyTag, 100),
                                event(EventKind::message_matched, 1, 8, 20),
                                event(EventKind::receive_ended, 1, 8, 20)}));
    pump();
}

TEST_F(RecordingTest, records_a_cancelled_receive_with_its_error) {
    Asked& asked = receive(kHonest, 5, 100);
    engine_->cancel(asked.receive);
    EXPECT_EQ(events(),
              (Events{event(EventKind::receive_started, 2, 5, 100),
                      event(EventKind::receive_ended, failed(2, Errc::cancelled), 5, 0)}));
    pump();
}

TEST_F(RecordingTest, records_a_send_that_does_not_wait) {
    send(kHonest, 16);
    EXPECT_EQ(events(), (Events{event(EventKind::send_started, 2, 1, 16),
                                event(EventKind::send_ended, 2, 1, 16)}));
    pump();
}

TEST_F(RecordingTest, records_what_a_send_waits_for) {
    send(kHostile, 2000, true);
    EXPECT_EQ(events(),
              (Events{event(EventKind::send_started, 1, 1, 2000),
                      event(EventKind::send_waits, waits(1, WaitReason::match), 1, 2000)}));
    hostile_.set_room(Lane::eager, 0);
    send(kHostile, 10);
    EXPECT_EQ(events(), (Events{event(EventKind::send_started, 1, 1, 10),
                                event(EventKind::send_waits, waits(1, WaitReason::room), 1, 10)}));
    // Use up the headers that the honest peer allows: 8 shared and 4 of the reserve.
    for (int i = 0; i < 12; ++i) send(kHonest, 0);
    events();
    send(kHonest, 0);
    EXPECT_EQ(events(), (Events{event(EventKind::send_started, 2, 1, 0),
                                event(EventKind::send_waits, waits(2, WaitReason::credit), 1, 0)}));
    pump();
}

TEST_F(RecordingTest, records_a_communicator_and_a_send_to_a_peer_without_a_link) {
    const std::array<NodeId, 2> members{node(0), node(9)};
    Context& context = engine_->add_context(ContextId(77), members, kMe);
    EXPECT_EQ(events(), (Events{{.time = now_,
                                 .kind = EventKind::communicator_made,
                                 .a = 1,
                                 .b = 2,
                                 .c = 77,
                                 .d = 0}}));
    send_in(context, Rank(1), 10);
    engine_->give_up(node(9), Error(Errc::timed_out, "nobody answers"));
    const auto in_second = [](RecordedEvent made) {
        made.a = 1;
        return made;
    };
    EXPECT_EQ(events(),
              (Events{in_second(event(EventKind::send_started, 1, 1, 10)),
                      in_second(event(EventKind::send_waits, waits(1, WaitReason::link), 1, 10)),
                      link(EventKind::link_given_up, 9, Errc::timed_out),
                      in_second(event(EventKind::send_ended, failed(1, Errc::timed_out), 1, 10))}));
    pump();
    engine_->end_context(context);
    ASSERT_EQ(seen_ + 1, recorder_.snapshot().events.size());
    EXPECT_EQ(events()[0].kind, EventKind::communicator_ended);
}

TEST_F(RecordingTest, records_a_call) {
    call(kHostile, 20);
    // "echo" with its first letter in the lowest byte.
    constexpr std::uint64_t kEcho = 0x6f686365;
    EXPECT_EQ(events(), (Events{event(EventKind::call_started, 1, kEcho, 20)}));
    pass(1ms);
    says(Lane::rpc, said(response(0, 30)) + pattern(1, 30));
    EXPECT_EQ(events(), (Events{event(EventKind::call_ended, 1, kEcho, 30)}));
}

TEST_F(RecordingTest, records_a_collective) {
    Context& alone = engine_->add_context(ContextId(78), std::array{node(0)}, kMe);
    events();
    Asked& asked = asked_.emplace_back(0);
    asked.collective.owner = &asked;
    asked.collective.terms.what = schedule::Collective::barrier;
    asked.collective.timeout = 10s;
    for (const std::uint64_t number : {0U, 1U}) {
        engine_->start(alone, asked.collective);
        pump();
        const auto barrier = static_cast<std::uint32_t>(schedule::Collective::barrier);
        RecordedEvent started = event(EventKind::collective_started, barrier, number, 0);
        RecordedEvent ended = event(EventKind::collective_ended, barrier, number, 0);
        started.a = ended.a = 1;
        EXPECT_EQ(events(), (Events{started, ended}));
    }
    asked.ended = 1;
}

TEST_F(RecordingTest, records_a_collective_whose_messages_wait) {
    hostile_.set_room(Lane::eager, 0);
    honest_.set_room(Lane::eager, 0);
    Asked& asked = asked_.emplace_back(8);
    asked.collective.owner = &asked;
    asked.collective.terms = {
        .what = schedule::Collective::broadcast, .dtype = DType::u8, .count = 8};
    asked.collective.chunks = schedule::Chunks::even(8, 3);
    asked.collective.output = {asked.region};
    asked.collective.timeout = 10s;
    engine_->start(*world_, asked.collective);
    const auto broadcast = static_cast<std::uint32_t>(schedule::Collective::broadcast);
    const Events made = events();
    ASSERT_GE(made.size(), 2U);
    EXPECT_EQ(made[0], event(EventKind::collective_started, broadcast, 0, 8));
    for (std::size_t i = 1; i < made.size(); ++i) {
        const std::uint32_t peer = event_subject(made[i].b);
        EXPECT_TRUE(peer == 1 || peer == 2) << peer;
        EXPECT_EQ(made[i],
                  event(EventKind::collective_waits, waits(peer, WaitReason::room), 0, made[i].d));
        EXPECT_GT(made[i].d, 0U);
    }
    engine_->cancel(asked.collective);
    EXPECT_EQ(
        events(),
        (Events{event(EventKind::collective_ended, failed(broadcast, Errc::cancelled), 0, 8)}));
    pump();
}

TEST_F(RecordingTest, records_a_lost_link_and_the_operations_that_end_with_it) {
    pass(2ms);
    hostile_.go_down(Error(Errc::link_closed, "gone"));
    pump();
    EXPECT_EQ(events(),
              (Events{link(EventKind::link_down, 1, Errc::link_closed),
                      event(EventKind::receive_ended, failed(1, Errc::link_closed), 999'999, 0)}));
}

TEST_F(RecordingTest, records_links_that_come_up) {
    int ups = 0;
    for (const auto& entry : recorder_.snapshot().events) {
        if (entry.event.kind == EventKind::link_up) ++ups;
    }
    EXPECT_EQ(ups, 2);
}

class RecordingOff : public RecordingTest {
protected:
    RecordingOff() : RecordingTest(0) {}
};

TEST_F(RecordingOff, records_nothing) {
    receive(kHostile, 5, 100);
    says(Lane::eager, eager(header(0, 5, 64)));
    const auto snapshot = recorder_.snapshot();
    EXPECT_TRUE(snapshot.events.empty());
    EXPECT_EQ(snapshot.dropped, 0U);
}

}  // namespace
}  // namespace nexar::engine

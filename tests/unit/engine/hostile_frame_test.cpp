#include "hostile.hpp"

#include <set>

#include "../base/counting_memory.hpp"

namespace nexar::engine {
namespace {

class HostileFrame : public HostilePeer {
protected:
    void asks_back(std::uint64_t sequence, ContextId context = kWorld) {
        says(Lane::control, said(wire::Withdraw{.context = context,
                                                .sequence = Sequence(sequence),
                                                .step = wire::WithdrawStep::asked}));
    }
    void answers(std::uint64_t sequence, wire::WithdrawStep step) {
        says(Lane::control,
             said(wire::Withdraw{.context = kWorld, .sequence = Sequence(sequence), .step = step}));
    }
    void grants(std::uint64_t sequence, ContextId context = kWorld) {
        says(Lane::control, said(wire::Grant{.context = context, .sequence = Sequence(sequence)}));
    }
};

TEST_F(HostileFrame, a_sequence_that_skips_cuts_it_off) {
    says(Lane::eager, eager(header(0, 1, 3)));
    says(Lane::eager, eager(header(2, 1, 3)));
    EXPECT_EQ(engine_->messages(), 1U);
    expect_cut_off(Errc::protocol_violation,
                   "the peer sent message 2 of a communicator, but message 1 was expected");
}

TEST_F(HostileFrame, a_sequence_that_repeats_cuts_it_off) {
    says(Lane::eager, eager(header(0, 1, 3)));
    says(Lane::eager, bulk(header(0, 1, 3)));
    EXPECT_EQ(engine_->messages(), 1U);
    expect_cut_off(Errc::protocol_violation,
                   "the peer sent message 0 of a communicator, but message 1 was expected");
}

TEST_F(HostileFrame, the_last_sequence_first_cuts_it_off) {
    says(Lane::eager, eager(header(~std::uint64_t{0}, 1, 3)));
    expect_cut_off(Errc::protocol_violation, "18446744073709551615");
}

TEST_F(HostileFrame, unknown_communicators_are_kept_up_to_a_limit) {
    const auto most = small_options().max_early_contexts;
    for (std::uint64_t i = 0; i < most; ++i) {
        says(Lane::eager, begins(ContextId(100 + i), kHostile, 2));
        says(Lane::eager, eager(header(0, 1, 100, ContextId(100 + i))));
        says(Lane::eager, eager(header(1, 2, 100, ContextId(100 + i))));
    }
    expect_not_cut_off();
    EXPECT_EQ(engine_->messages(), 2 * most);
    says(Lane::eager, begins(ContextId(200), kHostile));
    EXPECT_EQ(engine_->messages(), 2 * most);
    expect_cut_off(Errc::limit_exceeded, "more than 3 communicators that this side has not made");

    // What came whole is there for who makes the communicator.
    const std::array<NodeId, 2> members{node(0), node(1)};
    Context& made = engine_->add_context(ContextId(101), members, kMe);
    EXPECT_TRUE(engine_->look(made, {.source = kHostile, .tag = Tag(2)}));
    EXPECT_FALSE(engine_->look(made, {.source = kHostile, .tag = Tag(3)}));
}

TEST_F(HostileFrame, a_communicator_of_others_is_an_unknown_one) {
    const std::array<NodeId, 2> members{node(0), node(2)};
    Context& others = engine_->add_context(ContextId(50), members, kMe);
    says(Lane::eager, begins(ContextId(50), kHostile) + eager(header(0, 1, 10, ContextId(50))));
    expect_not_cut_off();
    EXPECT_FALSE(engine_->look(others, {}));
}

TEST_F(HostileFrame, frames_on_the_wrong_lane_cut_it_off) {
    says(Lane::control, eager(header(0, 1, 3)));
    EXPECT_EQ(engine_->messages(), 0U);
    expect_cut_off(Errc::protocol_violation,
                   "the peer sent a frame of type eager on the control lane");
}

TEST_F(HostileFrame, credit_on_the_eager_lane_cuts_it_off) {
    says(Lane::eager, said(wire::Credit{.headers = 1}));
    expect_cut_off(Errc::protocol_violation,
                   "the peer sent a frame of type credit on the eager lane");
}

TEST_F(HostileFrame, a_frame_on_the_rpc_lane_cuts_it_off) {
    says(Lane::rpc, said(wire::Preamble{.lane = wire::Lane::rpc}));
    expect_not_cut_off();
    says(Lane::rpc, said(wire::Grant{.context = kWorld}));
    expect_cut_off(Errc::protocol_violation, "the peer sent a frame of type grant on the rpc lane");
}

TEST_F(HostileFrame, a_lane_that_begins_as_another_cuts_it_off) {
    says(Lane::rpc, said(wire::Preamble{.lane = wire::Lane::eager}));
    expect_cut_off(Errc::protocol_violation,
                   "began the rpc lane with the preamble of the eager lane");
}

TEST_F(HostileFrame, a_hello_where_none_is_due_cuts_it_off) {
    says(Lane::control, said(wire::Hello{}));
    expect_cut_off(Errc::protocol_violation,
                   "the peer sent a frame of type hello where it is not allowed");
}

TEST_F(HostileFrame, an_unknown_frame_cuts_it_off) {
    says(Lane::control, Bytes{std::byte{1}, std::byte{99}, {}, {}, {}, {}, {}, {}});
    expect_cut_off(Errc::unsupported, "type");
}

TEST_F(HostileFrame, a_frame_of_another_version_cuts_it_off) {
    Bytes frame = said(wire::Credit{.headers = 1});
    frame[0] = std::byte{2};
    says(Lane::control, frame);
    expect_cut_off(Errc::version_mismatch, "version");
}

TEST_F(HostileFrame, a_grant_for_a_message_that_was_never_announced_cuts_it_off) {
    send(kHostile, 10);
    grants(1);
    expect_cut_off(Errc::protocol_violation, "granted a message that was never announced");
}

// It may have ended here while the grant was under way.
TEST_F(HostileFrame, a_grant_in_an_unknown_communicator_is_ignored) {
    grants(0, ContextId(99));
    expect_not_cut_off();
}

TEST_F(HostileFrame, a_second_grant_changes_nothing) {
    Asked& sent = send(kHostile, 2000, true);
    grants(0);
    ASSERT_EQ(hostile_.outgoing().size(), 1U);
    grants(0);
    EXPECT_EQ(hostile_.outgoing().size(), 1U);
    hostile_.release(port::StreamId(hostile_.outgoing().begin()->first),
                     port::SendOutcome::delivered);
    pump();
    EXPECT_EQ(sent.ended, 1);
    grants(0);
    EXPECT_EQ(sent.ended, 1);
    expect_not_cut_off();
}

TEST_F(HostileFrame, an_answer_that_was_not_asked_for_cuts_it_off) {
    Asked& sent = send(kHostile, 2000, true);
    answers(0, wire::WithdrawStep::done);
    EXPECT_EQ(sent.ended, 0);
    expect_cut_off(Errc::protocol_violation,
                   "reported the outcome of a message without being asked");
    EXPECT_EQ(sent.error()->code(), Errc::protocol_violation);
}

TEST_F(HostileFrame, a_second_answer_cuts_it_off) {
    hostile_.sent_whole = true;
    Asked& sent = send(kHostile, 2000);
    engine_->cancel(sent.send);
    pump();
    answers(0, wire::WithdrawStep::received);
    ASSERT_EQ(sent.ended, 1);
    EXPECT_FALSE(sent.error());
    expect_not_cut_off();
    answers(0, wire::WithdrawStep::done);
    EXPECT_EQ(sent.ended, 1);
    expect_cut_off(Errc::protocol_violation,
                   "reported the outcome of a message without being asked");
}

TEST_F(HostileFrame, an_answer_that_never_comes_ends_the_send_with_the_link) {
    hostile_.sent_whole = true;
    Asked& sent = send(kHostile, 2000);
    engine_->cancel(sent.send);
    pump();
    EXPECT_EQ(sent.ended, 0);
    hostile_.go_down(Error(Errc::timed_out, "it is gone"));
    pump();
    ASSERT_EQ(sent.ended, 1);
    EXPECT_EQ(sent.error()->code(), Errc::timed_out);
}

TEST_F(HostileFrame, messages_that_were_never_sent_are_taken_back_up_to_a_limit) {
    const auto most = small_options().shared.headers;
    for (std::uint64_t i = 0; i < most; ++i) asks_back(5 + i, ContextId(i));
    expect_not_cut_off();
    asks_back(77);
    EXPECT_TRUE(told<wire::Withdraw>().empty());
    expect_cut_off(Errc::limit_exceeded, "withdraws messages that it never sent");
}

TEST_F(HostileFrame, a_message_that_is_taken_back_twice_cuts_it_off) {
    asks_back(0);
    expect_not_cut_off();
    asks_back(0);
    expect_cut_off(Errc::protocol_violation, "withdrew one message twice");
}

TEST_F(HostileFrame, a_message_that_was_taken_back_and_comes_with_its_payload_cuts_it_off) {
    asks_back(0);
    says(Lane::eager, eager(header(0, 1, 10)));
    expect_cut_off(Errc::protocol_violation, "the payload of one message twice");
}

TEST_F(HostileFrame, a_message_that_came_whole_is_not_taken_back) {
    says(Lane::eager, eager(header(0, 1, 10)));
    asks_back(0);
    asks_back(0);
    expect_not_cut_off();
    ASSERT_EQ(told<wire::Withdraw>().size(), 2U);
    EXPECT_EQ(told<wire::Withdraw>()[0].step, wire::WithdrawStep::received);
    EXPECT_EQ(engine_->messages(), 1U);
}

TEST(MessageNameHash, chosen_names_do_not_collide) {
    std::set<std::size_t> buckets;
    const MessageNameHash hash{.seed = 77};
    for (std::uint64_t i = 0; i < 4096; ++i) {
        // One number each to a hash that adds.
        buckets.insert(hash({ContextId(i), Sequence(0 - 31 * i)}) % 4099);
    }
    EXPECT_GT(buckets.size(), 2200U);
    EXPECT_NE(hash({ContextId(1), Sequence(2)}),
              MessageNameHash{.seed = 78}({ContextId(1), Sequence(2)}));
}

class HostileWithDefaults : public HostilePeer {
protected:
    HostileWithDefaults() : HostilePeer(EngineOptions()) {}
};

TEST_F(HostileWithDefaults, a_peer_can_make_us_keep_at_most_64_mib) {
    const EngineOptions limits;
    // Sizes that waste most of the buffers that they get.
    const std::uint64_t wasteful = InMessage::kMaxBlockBytes + 1;
    const auto fill = [&](ContextId context, std::uint64_t from, const Amount& pool, bool reserve) {
        for (std::uint64_t i = 0; i < pool.headers; ++i) {
            const bool buffered = (i + 1) * wasteful <= pool.payload;
            auto made = header(from + i, 1, buffered ? wasteful : 0, context);
            made.from_reserve = reserve;
            hostile_.arrive(Lane::eager, eager(made));
        }
    };
    fill(kWorld, 0, limits.shared, false);
    fill(kWorld, limits.shared.headers, limits.reserve, true);
    for (std::uint64_t i = 0; i < limits.max_early_contexts; ++i) {
        hostile_.arrive(Lane::eager, begins(ContextId(100 + i), kHostile));
    }
    pump();
    expect_not_cut_off();
    EXPECT_EQ(engine_->messages(), limits.shared.headers + limits.reserve.headers);
    constexpr std::size_t kInMap = 64;  // what a map takes beside
    const std::uint64_t early = limits.max_early_contexts * (sizeof(Pair) + kInMap);
    const std::uint64_t parked = 256 * FakeLink::kFirstWindow;  // streams whose message never comes
    const std::uint64_t held =
        engine_->held_bytes() + pool_.statistics().total.bytes_in_use + parked + early;
    EXPECT_LE(held, std::uint64_t{64} << 20U);
}

class HostileWithoutMemory : public HostilePeer {
protected:
    HostileWithoutMemory() : HostilePeer(small_options(), memory()) {}
    static CountingMemory& memory() {
        static CountingMemory memory;
        return memory;
    }
};

TEST_F(HostileWithoutMemory, an_eager_message_without_memory_never_arrives) {
    memory().run_dry_after(0);
    const Bytes message = eager(header(0, 1, 3000));
    const auto pieces = std::span<const std::byte>(message);
    says(Lane::eager, pieces.first(500));
    says(Lane::eager, pieces.subspan(500));
    memory().run_dry_after(1000);
    EXPECT_FALSE(engine_->look(*world_, {.source = kHostile, .tag = Tag(2)}));
    Asked& asked = receive(kHostile, 1);
    pump();
    EXPECT_EQ(asked.ended, 0);
    expect_cut_off(Errc::out_of_memory, "no memory");
    ASSERT_EQ(asked.ended, 1);
    EXPECT_EQ(asked.error()->code(), Errc::out_of_memory);
    EXPECT_EQ(engine_->messages(), 0U);
}

}  // namespace
}  // namespace nexar::engine

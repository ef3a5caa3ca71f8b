#include "hostile.hpp"

#include <set>

#include "../base/counting_memory.hpp"

namespace nexar::engine {
namespace {

class HostileFrame : public HostilePeer {
protected:
    void withdraws(std::uint64_t sequence, ContextId context = kWorld) {
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

TEST_F(HostileFrame, a_skipped_sequence_number_disconnects_the_peer) {
    says(Lane::eager, eager(header(0, 1, 3)));
    says(Lane::eager, eager(header(2, 1, 3)));
    EXPECT_EQ(engine_->messages(), 1U);
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent message 2 of a communicator, but message 1 was expected");
}

TEST_F(HostileFrame, a_repeated_sequence_number_disconnects_the_peer) {
    says(Lane::eager, eager(header(0, 1, 3)));
    says(Lane::eager, bulk(header(0, 1, 3)));
    EXPECT_EQ(engine_->messages(), 1U);
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent message 0 of a communicator, but message 1 was expected");
}

TEST_F(HostileFrame, starting_with_the_largest_sequence_number_disconnects_the_peer) {
    says(Lane::eager, eager(header(~std::uint64_t{0}, 1, 3)));
    expect_disconnected(Errc::protocol_violation, "18446744073709551615");
}

TEST_F(HostileFrame, unknown_communicators_are_kept_up_to_a_limit) {
    const auto most = small_options().max_early_contexts;
    for (std::uint64_t i = 0; i < most; ++i) {
        says(Lane::eager, begins(ContextId(100 + i), kHostile, 2));
        says(Lane::eager, eager(header(0, 1, 100, ContextId(100 + i))));
        says(Lane::eager, eager(header(1, 2, 100, ContextId(100 + i))));
    }
    expect_not_disconnected();
    EXPECT_EQ(engine_->messages(), 2 * most);
    says(Lane::eager, begins(ContextId(200), kHostile));
    EXPECT_EQ(engine_->messages(), 2 * most);
    expect_disconnected(Errc::limit_exceeded,
                        "more than 3 communicators that this side has not made");

    // Messages that arrived whole can be received once the communicator is made.
    const std::array<NodeId, 2> members{node(0), node(1)};
    Context& made = engine_->add_context(ContextId(101), members, kMe);
    EXPECT_TRUE(engine_->look(made, {.source = kHostile, .tag = Tag(2)}));
    EXPECT_FALSE(engine_->look(made, {.source = kHostile, .tag = Tag(3)}));
}

TEST_F(HostileFrame, a_communicator_without_the_peer_counts_as_unknown) {
    const std::array<NodeId, 2> members{node(0), node(2)};
    Context& others = engine_->add_context(ContextId(50), members, kMe);
    says(Lane::eager, begins(ContextId(50), kHostile) + eager(header(0, 1, 10, ContextId(50))));
    expect_not_disconnected();
    EXPECT_FALSE(engine_->look(others, {}));
}

TEST_F(HostileFrame, an_eager_frame_on_the_control_lane_disconnects_the_peer) {
    says(Lane::control, eager(header(0, 1, 3)));
    EXPECT_EQ(engine_->messages(), 0U);
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent a frame of type eager on the control lane");
}

TEST_F(HostileFrame, a_credit_frame_on_the_eager_lane_disconnects_the_peer) {
    says(Lane::eager, said(wire::Credit{.headers = 1}));
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent a frame of type credit on the eager lane");
}

TEST_F(HostileFrame, a_grant_on_the_rpc_lane_disconnects_the_peer) {
    says(Lane::rpc, said(wire::Preamble{.lane = wire::Lane::rpc}));
    expect_not_disconnected();
    says(Lane::rpc, said(wire::Grant{.context = kWorld}));
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent a frame of type grant on the rpc lane");
}

TEST_F(HostileFrame, the_preamble_of_another_lane_disconnects_the_peer) {
    says(Lane::rpc, said(wire::Preamble{.lane = wire::Lane::eager}));
    expect_disconnected(Errc::protocol_violation,
                        "began the rpc lane with the preamble of the eager lane");
}

TEST_F(HostileFrame, an_unexpected_hello_disconnects_the_peer) {
    says(Lane::control, said(wire::Hello{}));
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent a frame of type hello where it is not allowed");
}

TEST_F(HostileFrame, a_frame_of_unknown_type_disconnects_the_peer) {
    says(Lane::control, Bytes{std::byte{1}, std::byte{99}, {}, {}, {}, {}, {}, {}});
    expect_disconnected(Errc::unsupported, "type");
}

TEST_F(HostileFrame, a_frame_of_another_version_disconnects_the_peer) {
    Bytes frame = said(wire::Credit{.headers = 1});
    frame[0] = std::byte{2};
    says(Lane::control, frame);
    expect_disconnected(Errc::version_mismatch, "version");
}

TEST_F(HostileFrame, a_grant_for_an_unannounced_message_disconnects_the_peer) {
    send(kHostile, 10);
    grants(1);
    expect_disconnected(Errc::protocol_violation, "granted a message that was never announced");
}

// The communicator may have ended here while the grant was in flight.
TEST_F(HostileFrame, a_grant_in_an_unknown_communicator_is_ignored) {
    grants(0, ContextId(99));
    expect_not_disconnected();
}

TEST_F(HostileFrame, a_second_grant_has_no_effect) {
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
    expect_not_disconnected();
}

TEST_F(HostileFrame, an_unrequested_withdraw_answer_disconnects_the_peer) {
    Asked& sent = send(kHostile, 2000, true);
    answers(0, wire::WithdrawStep::done);
    EXPECT_EQ(sent.ended, 0);
    expect_disconnected(Errc::protocol_violation,
                        "reported the outcome of a message without being asked");
    EXPECT_EQ(sent.error()->code(), Errc::protocol_violation);
}

TEST_F(HostileFrame, a_second_withdraw_answer_disconnects_the_peer) {
    hostile_.sent_whole = true;
    Asked& sent = send(kHostile, 2000);
    engine_->cancel(sent.send);
    pump();
    answers(0, wire::WithdrawStep::received);
    ASSERT_EQ(sent.ended, 1);
    EXPECT_FALSE(sent.error());
    expect_not_disconnected();
    answers(0, wire::WithdrawStep::done);
    EXPECT_EQ(sent.ended, 1);
    expect_disconnected(Errc::protocol_violation,
                        "reported the outcome of a message without being asked");
}

TEST_F(HostileFrame, a_cancelled_send_ends_with_the_link_when_no_answer_arrives) {
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

TEST_F(HostileFrame, withdrawals_of_messages_never_sent_are_limited) {
    const auto most = small_options().shared.headers;
    for (std::uint64_t i = 0; i < most; ++i) withdraws(5 + i, ContextId(i));
    expect_not_disconnected();
    withdraws(77);
    EXPECT_TRUE(control_frames<wire::Withdraw>().empty());
    expect_disconnected(Errc::limit_exceeded, "withdraws messages that it never sent");
}

TEST_F(HostileFrame, withdrawing_a_message_twice_disconnects_the_peer) {
    withdraws(0);
    expect_not_disconnected();
    withdraws(0);
    expect_disconnected(Errc::protocol_violation, "withdrew one message twice");
}

TEST_F(HostileFrame, sending_the_payload_of_a_withdrawn_message_disconnects_the_peer) {
    withdraws(0);
    says(Lane::eager, eager(header(0, 1, 10)));
    expect_disconnected(Errc::protocol_violation, "the payload of one message twice");
}

TEST_F(HostileFrame, a_complete_message_cannot_be_withdrawn) {
    says(Lane::eager, eager(header(0, 1, 10)));
    withdraws(0);
    withdraws(0);
    expect_not_disconnected();
    ASSERT_EQ(control_frames<wire::Withdraw>().size(), 2U);
    EXPECT_EQ(control_frames<wire::Withdraw>()[0].step, wire::WithdrawStep::received);
    EXPECT_EQ(engine_->messages(), 1U);
}

TEST(MessageNameHash, chosen_names_do_not_collide) {
    std::set<std::size_t> buckets;
    const MessageNameHash hash{.seed = 77};
    for (std::uint64_t i = 0; i < 4096; ++i) {
        // The hash 31 * context + sequence would map all of these to the same value.
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

TEST_F(HostileWithDefaults, a_peer_can_make_this_node_hold_at_most_64_mib) {
    const EngineOptions limits;
    // The size that wastes the largest part of its buffer.
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
    expect_not_disconnected();
    EXPECT_EQ(engine_->messages(), limits.shared.headers + limits.reserve.headers);
    constexpr std::size_t kInMap = 64;  // overhead of a map entry
    const std::uint64_t early = limits.max_early_contexts * (sizeof(Pair) + kInMap);
    const std::uint64_t parked =
        256 * FakeLink::kFirstWindow;  // streams whose message never arrives
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

TEST_F(HostileWithoutMemory, an_eager_message_that_cannot_be_buffered_disconnects_the_peer) {
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
    expect_disconnected(Errc::out_of_memory, "no memory");
    ASSERT_EQ(asked.ended, 1);
    EXPECT_EQ(asked.error()->code(), Errc::out_of_memory);
    EXPECT_EQ(engine_->messages(), 0U);
}

}  // namespace
}  // namespace nexar::engine

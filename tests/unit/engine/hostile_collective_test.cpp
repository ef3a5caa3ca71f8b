#include "hostile_collective.hpp"

namespace nexar::engine {
namespace {

constexpr auto kWithoutCredit = "without credit for them";
constexpr std::uint64_t kFuture = 5;  // an operation that this side never calls

TEST_F(HostileCollective, a_message_in_an_unintroduced_communicator_disconnects_the_peer) {
    auto made = part(0, 0, 0, 1);
    made.context = ContextId(77);
    says_part(made);
    expect_disconnected(Errc::protocol_violation, "without having introduced it");
}

TEST_F(HostileCollective, a_message_in_a_communicator_not_made_here_disconnects_the_peer) {
    says(Lane::eager, begins(ContextId(78), kHostile, 2));
    expect_not_disconnected();
    auto made = part(0, 0, 9, 1);
    made.context = ContextId(78);
    says_part(made);
    expect_disconnected(Errc::protocol_violation, "that this side has not made");
}

TEST_F(HostileCollective, a_skipped_sequence_number_disconnects_the_peer) {
    says_part(part(0, kFuture, 9, 1));
    expect_not_disconnected();
    says_part(part(2, kFuture, 9, 1));
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent message 2 of its collectives, but message 1 was expected");
}

TEST_F(HostileCollective, a_repeated_sequence_number_disconnects_the_peer) {
    says_part(part(0, kFuture, 9, 1));
    says_part(part(0, kFuture, 9, 1));
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent message 0 of its collectives, but message 1 was expected");
}

TEST_F(HostileCollective, more_headers_than_the_pool_allows_disconnect_the_peer) {
    std::uint64_t next = 0;
    while (next < PairCollectives::kPool.headers) says_part(part(next++, kFuture, 0, 1));
    expect_not_disconnected();
    says_part(part(next, kFuture, 0, 1));
    expect_disconnected(Errc::protocol_violation, kWithoutCredit);
}

TEST_F(HostileCollective, more_payload_than_the_pool_allows_disconnects_the_peer) {
    std::uint64_t next = 0;
    while (next < PairCollectives::kPool.payload / kLaneBytes) {
        says_part(part(next++, kFuture, kLaneBytes, 1));
    }
    expect_not_disconnected();
    says_part(part(next, kFuture, 1, 1));
    expect_disconnected(Errc::protocol_violation, kWithoutCredit);
}

TEST_F(HostileCollective, a_streamed_message_is_charged_for_its_head_only) {
    const std::uint64_t heads = PairCollectives::kPool.payload / 1024;
    for (std::uint64_t i = 0; i < heads; ++i) {
        says_part(part(i, kFuture, wire::kMaxByteCount, 1, PayloadPlace::stream));
    }
    expect_not_disconnected();
    says_part(part(heads, kFuture, 1, 1, PayloadPlace::stream));
    expect_disconnected(Errc::protocol_violation, kWithoutCredit);
}

TEST_F(HostileCollective, more_headers_than_the_reserve_allows_disconnect_the_peer) {
    auto made = part(0, kFuture, 0, 1);
    made.from_reserve = true;
    for (std::uint64_t i = 0; i < PairCollectives::kReserve.headers; ++i) {
        made.sequence = Sequence(i);
        says_part(made);
    }
    expect_not_disconnected();
    made.sequence = Sequence(PairCollectives::kReserve.headers);
    says_part(made);
    expect_disconnected(Errc::protocol_violation, kWithoutCredit);
}

TEST_F(HostileCollective, more_payload_than_the_reserve_allows_disconnects_the_peer) {
    auto made = part(0, kFuture, PairCollectives::kReserve.payload, 1);
    made.from_reserve = true;
    says_part(made);
    says_part(part(1, kFuture, 1, 1));
    expect_not_disconnected();
    made = part(2, kFuture, 1, 1);
    made.from_reserve = true;
    says_part(made);
    expect_disconnected(Errc::protocol_violation, kWithoutCredit);
}

TEST_F(HostileCollective, a_message_that_is_not_in_the_schedule_disconnects_the_peer) {
    Asked& asked = barrier();
    auto made = part(0, 0, 0, asked.collective.terms.fingerprint);
    made.message = 5;
    says_part(made);
    EXPECT_EQ(asked.ended, 0);
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent message 5 of barrier #0, which does not exist");
    expect_failed(asked, Errc::protocol_violation, "which does not exist");
}

TEST_F(HostileCollective, an_early_message_that_is_not_in_the_schedule_disconnects_the_peer) {
    auto made = part(0, 1, 0, fingerprint(barrier_call(), 1));
    made.message = 5;
    says_part(made);
    barrier();
    expect_not_disconnected();
    Asked& asked = barrier();
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent message 5 of barrier #1, which does not exist");
    expect_failed(asked, Errc::protocol_violation, "which does not exist");
}

TEST_F(HostileCollective, a_message_of_the_wrong_size_disconnects_the_peer) {
    Asked& asked = broadcast(100);
    says_part(part(0, 0, 99, asked.collective.terms.fingerprint));
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent message 0 of broadcast #0, which does not exist");
    EXPECT_EQ(asked.memory, Bytes(100));
}

TEST_F(HostileCollective, a_repeated_message_disconnects_the_peer) {
    Asked& asked = broadcast(300);
    const std::uint64_t print = asked.collective.terms.fingerprint;
    says_part(part(0, 0, 300, print, PayloadPlace::stream));
    expect_not_disconnected();
    says_part(part(1, 0, 300, print));
    EXPECT_EQ(asked.memory, Bytes(300));
    expect_disconnected(Errc::protocol_violation,
                        "the peer sent message 0 of broadcast #0, which does not exist");
    expect_failed(asked, Errc::protocol_violation, "which does not exist");
}

TEST_F(HostileCollective, a_repeated_early_message_disconnects_the_peer) {
    const std::uint64_t print = fingerprint(broadcast_call(50), 0);
    says_part(part(0, 0, 50, print));
    says_part(part(1, 0, 50, print));
    expect_not_disconnected();
    broadcast(50);
    expect_disconnected(Errc::protocol_violation, "which does not exist");
}

TEST_F(HostileCollective, mismatched_counts_fail_only_the_operation) {
    Asked& asked = call_in(*duo_, 100, exchange_call(100));
    says_part(part(0, 0, 90, asked.collective.terms.fingerprint));
    expect_failed(asked, Errc::invalid_argument,
                  "rank 1 sends 90 bytes to rank 0, which expects 100");
    const auto aborts = frames_sent_to<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(aborts.size(), 1U);
    EXPECT_EQ(aborts[0].operation, 0U);
    EXPECT_EQ(aborts[0].code, Errc::invalid_argument);
    expect_not_disconnected();
}

TEST_F(HostileCollective, a_repeated_message_with_counts_fails_only_the_operation) {
    Asked& asked = call_in(*duo_, 300, exchange_call(300));
    const std::uint64_t print = asked.collective.terms.fingerprint;
    says_part(part(0, 0, 300, print, PayloadPlace::stream));
    says_part(part(1, 0, 300, print));
    expect_failed(asked, Errc::invalid_argument, "pass matching counts");
    expect_not_disconnected();
}

TEST_F(HostileCollective, messages_of_future_operations_are_kept) {
    for (std::uint64_t i = 0; i < 6; ++i) {
        // The peer sends the message of the last call first.
        says_part(part(i, 5 - i, 40 + i, fingerprint(broadcast_call(40 + i), 5 - i)));
    }
    for (std::uint64_t i = 0; i < 6; ++i) {
        Asked& asked = broadcast(45 - i);
        expect_succeeded(asked, pattern(i + 1, 45 - i));
    }
    expect_not_disconnected();
}

TEST_F(HostileCollective, too_many_future_operations_disconnect_the_peer) {
    const std::uint64_t most = collective_options().collectives.max_early;
    for (std::uint64_t i = 0; i < most; ++i) says_part(part(i, i * 1'000'000, 9, 1));
    says_part(part(most, 0, 9, 1));
    expect_not_disconnected();
    says_part(part(most + 1, ~std::uint64_t{0}, 9, 1));
    expect_disconnected(Errc::limit_exceeded, "the peer is more than 8 collectives ahead");
}

TEST_F(HostileCollective, too_many_streams_of_future_operations_disconnect_the_peer) {
    const std::uint64_t most = collective_options().collectives.max_early;
    for (std::uint64_t i = 0; i <= most; ++i) {
        expect_not_disconnected();
        streams(part_stream(i) + pattern(i, 9));
        says_part(part(i, i, 9, 1, PayloadPlace::stream));
    }
    expect_disconnected(Errc::limit_exceeded, "the peer is more than 8 collectives ahead");
}

TEST_F(HostileCollective, operations_make_room_for_further_future_ones_when_they_are_called) {
    for (std::uint64_t i = 0; i < 40; ++i) {
        says_abort(i + 7, "given up");
        barrier();
    }
    expect_not_disconnected();
}

TEST_F(HostileCollective, one_peer_cannot_use_up_the_share_of_another) {
    for (std::uint64_t i = 0; i < collective_options().collectives.max_early; ++i) {
        says(Lane::eager, said(wire::CollectiveAbort{.context = kWorld,
                                                     .operation = i + 1,
                                                     .code = Errc::cancelled,
                                                     .rank = kHostile,
                                                     .text = "given up"}));
    }
    auto made = part(0, 100, 9, 1);
    made.context = kWorld;
    honest_.arrive(Lane::eager, said(made) + pattern(1, 9));
    pump();
    EXPECT_FALSE(honest_.closed()) << *honest_.closed();
    expect_not_disconnected();
}

TEST_F(HostileCollective, credit_returns_when_the_operation_is_called) {
    for (std::uint64_t i = 0; i < 4; ++i) {
        says_part(part(i, i, kLaneBytes, fingerprint(broadcast_call(kLaneBytes), i)));
    }
    for (std::uint64_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(control_frames<wire::Credit>().empty());
        expect_succeeded(broadcast(kLaneBytes), pattern(i + 1, kLaneBytes));
    }
    const auto credits = control_frames<wire::Credit>();
    ASSERT_EQ(credits.size(), 1U);
    EXPECT_EQ(credits[0].pool, wire::CreditPool::collective);
    EXPECT_EQ(credits[0].context, kDuo);
    EXPECT_EQ(credits[0].payload_bytes, 4 * kLaneBytes);
    EXPECT_EQ(credits[0].headers, 4U);
}

TEST_F(HostileCollective, reserve_credit_returns_to_the_reserve) {
    auto made = part(0, 0, kLaneBytes, fingerprint(broadcast_call(kLaneBytes), 0));
    made.from_reserve = true;
    says_part(made);
    expect_succeeded(broadcast(kLaneBytes), pattern(1, kLaneBytes));
    const auto credits = control_frames<wire::Credit>();
    ASSERT_EQ(credits.size(), 1U);
    EXPECT_EQ(credits[0].pool, wire::CreditPool::collective_reserve);
    EXPECT_EQ(credits[0].payload_bytes, kLaneBytes);
}

TEST_F(HostileCollective, credit_returns_for_messages_of_ended_operations) {
    Asked& asked = broadcast(kLaneBytes);
    engine_->cancel(asked.collective);
    pump();
    // More than the pool allows, unless the credit returns.
    for (std::uint64_t i = 0; i < 40; ++i) says_part(part(i, 0, kLaneBytes, 1));
    expect_not_disconnected();
    std::uint64_t payload = 0;
    for (const auto& credit : control_frames<wire::Credit>()) payload += credit.payload_bytes;
    EXPECT_EQ(payload, 40 * kLaneBytes);
}

TEST_F(HostileCollective, credit_returns_for_messages_of_an_operation_that_cannot_start) {
    duo_->collectives.set_profile(collective_profile("broadcast=nothing_like_this"));
    for (std::uint64_t i = 0; i < 4; ++i) says_part(part(i, 0, kLaneBytes, 1));
    streams(part_stream(4) + pattern(9, 100));
    says_part(part(4, 0, 500, 1, PayloadPlace::stream));
    EXPECT_EQ(hostile_.incoming(), 1U);
    expect_failed(broadcast(kLaneBytes), Errc::bad_config, "nothing_like_this");
    EXPECT_EQ(hostile_.incoming(), 0U);
    ASSERT_EQ(control_frames<wire::Credit>().size(), 1U);
    EXPECT_EQ(control_frames<wire::Credit>()[0].payload_bytes, 4 * kLaneBytes);
    expect_not_disconnected();
}

TEST_F(HostileCollective, returning_more_credit_than_was_taken_disconnects_the_peer) {
    barrier();
    says(Lane::control,
         said(wire::Credit{.pool = wire::CreditPool::collective, .context = kDuo, .headers = 1}));
    expect_not_disconnected();
    says(Lane::control,
         said(wire::Credit{.pool = wire::CreditPool::collective, .context = kDuo, .headers = 1}));
    expect_disconnected(Errc::protocol_violation, "more credit than it had received");
}

TEST_F(HostileCollective, the_oldest_operation_progresses_when_later_ones_used_up_the_pool) {
    world_->collectives.set_profile(collective_profile("broadcast=chain"));
    // The chain runs from rank 2 to 0 to 1, and rank 1 has called none of the operations.
    Asked& oldest = call_in(*world_, 20, broadcast_call(20, kHonest, 3));
    for (std::uint32_t i = 0; i <= PairCollectives::kPool.headers; ++i) {
        call_in(*world_, 1, broadcast_call(1, kMe, 3));
    }
    Asked& last = asked_.back();
    EXPECT_EQ(last.ended, 0);
    auto sent = frames_sent_to<wire::CollectiveHeader>(hostile_);
    EXPECT_EQ(sent.size(), PairCollectives::kPool.headers);

    auto made = part(0, 0, 20, oldest.collective.terms.fingerprint);
    made.context = kWorld;
    honest_.arrive(Lane::eager, said(made) + pattern(3, 20));
    pump();
    expect_succeeded(oldest, pattern(3, 20));
    sent = frames_sent_to<wire::CollectiveHeader>(hostile_);
    ASSERT_GT(sent.size(), PairCollectives::kPool.headers);
    EXPECT_EQ(sent[PairCollectives::kPool.headers].operation, 0U);
    EXPECT_TRUE(sent[PairCollectives::kPool.headers].from_reserve);
    // Now the last one is the oldest.
    EXPECT_EQ(last.ended, 1);
    EXPECT_TRUE(sent.back().from_reserve);
    expect_not_disconnected();
}

}  // namespace
}  // namespace nexar::engine

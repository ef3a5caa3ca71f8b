#include "hostile.hpp"

namespace nexar::engine {
namespace {

constexpr auto kWithoutCredit = "without credit for it";

class HostileCredit : public HostilePeer {
protected:
    /// Delivers `count` messages that match no receive.
    void flood(std::uint64_t count, std::uint64_t bytes, bool from_reserve) {
        for (std::uint64_t i = 0; i < count; ++i) {
            auto made = header(sequence_++, 1, bytes);
            made.from_reserve = from_reserve;
            says(Lane::eager, eager(made));
        }
    }

    std::uint64_t sequence_ = 0;
    const EngineOptions limits_ = small_options();
};

TEST_F(HostileCredit, more_headers_than_the_shared_pool_allows_disconnect_the_peer) {
    flood(limits_.shared.headers, 0, false);
    expect_not_disconnected();
    EXPECT_EQ(engine_->messages(), limits_.shared.headers);
    flood(1, 0, false);
    EXPECT_EQ(engine_->messages(), limits_.shared.headers);
    expect_disconnected(Errc::protocol_violation, kWithoutCredit);
}

TEST_F(HostileCredit, more_payload_than_the_shared_pool_allows_disconnects_the_peer) {
    flood(4, 1024, false);
    expect_not_disconnected();
    flood(1, 1, false);
    EXPECT_EQ(engine_->messages(), 4U);
    expect_disconnected(Errc::protocol_violation, kWithoutCredit);
}

TEST_F(HostileCredit, more_headers_than_the_reserve_allows_disconnect_the_peer) {
    flood(limits_.reserve.headers, 0, true);
    expect_not_disconnected();
    flood(1, 0, true);
    EXPECT_EQ(engine_->messages(), limits_.reserve.headers);
    expect_disconnected(Errc::protocol_violation, kWithoutCredit);
}

TEST_F(HostileCredit, more_payload_than_the_reserve_allows_disconnects_the_peer) {
    flood(1, 1024, true);
    expect_not_disconnected();
    flood(1, 1, true);
    expect_disconnected(Errc::protocol_violation, kWithoutCredit);
}

TEST_F(HostileCredit, a_bulk_message_is_charged_for_its_head_only) {
    for (std::uint64_t i = 0; i < 4; ++i) {
        says(Lane::eager, bulk(header(i, 1, wire::kMaxByteCount)));
    }
    expect_not_disconnected();
    says(Lane::eager, bulk(header(4, 1, 1)));
    expect_disconnected(Errc::protocol_violation, kWithoutCredit);
}

TEST_F(HostileCredit, an_eager_message_is_charged_for_all_its_bytes) {
    // Larger than the head of a bulk message, which is all that a bulk message is charged.
    says(Lane::eager, eager(header(0, 1, 4096)));
    expect_not_disconnected();
    Asked& asked = receive(kHostile, 1);
    pump();
    ASSERT_EQ(asked.ended, 1);
    EXPECT_FALSE(asked.error());
    EXPECT_EQ(asked.memory, pattern(1, 4096));
    says(Lane::eager, eager(header(1, 1, 4097)));
    expect_disconnected(Errc::protocol_violation, kWithoutCredit);
}

TEST_F(HostileCredit, frames_after_a_violation_are_ignored) {
    flood(limits_.shared.headers + 5, 0, false);
    EXPECT_EQ(engine_->messages(), limits_.shared.headers);
    says(Lane::control, said(wire::Grant{.context = kWorld, .sequence = Sequence(0)}));
    hostile_.open();
    pump();
    EXPECT_EQ(hostile_.incoming(), 0U) << "a new stream is refused";
    EXPECT_EQ(pool_.statistics().total.bytes_in_use, 0U);
    expect_disconnected(Errc::protocol_violation, kWithoutCredit);
}

TEST_F(HostileCredit, credit_of_matched_messages_can_be_used_again) {
    for (std::uint64_t i = 0; i < 10 * limits_.shared.headers; ++i) {
        Asked& asked = receive(kHostile, 40 + i);
        says(Lane::eager, eager(header(i, 40 + i, 256)));
        ASSERT_EQ(asked.ended, 1);
        EXPECT_EQ(engine_->messages(), 0U);
    }
    expect_not_disconnected();
    std::uint64_t given_back = 0;
    for (const auto& credit : control_frames<wire::Credit>()) given_back += credit.headers;
    EXPECT_GT(given_back, 9 * limits_.shared.headers);
    EXPECT_LE(given_back, 10 * limits_.shared.headers);
}

TEST_F(HostileCredit, returning_credit_that_was_never_taken_disconnects_the_peer) {
    says(Lane::control, said(wire::Credit{.pool = wire::CreditPool::shared, .headers = 1}));
    expect_disconnected(Errc::protocol_violation, "more credit than it had received");
}

TEST_F(HostileCredit, returning_more_credit_than_was_taken_disconnects_the_peer) {
    Asked& sent = send(kHostile, 100);
    pump();
    ASSERT_EQ(sent.ended, 1);
    says(Lane::control, said(wire::Credit{.payload_bytes = 100, .headers = 1}));
    expect_not_disconnected();
    says(Lane::control, said(wire::Credit{.payload_bytes = wire::kMaxByteCount}));
    expect_disconnected(Errc::protocol_violation, "more credit than it had received");
}

TEST_F(HostileCredit, credit_of_an_unknown_communicator_is_ignored) {
    says(Lane::control,
         said(wire::Credit{
             .pool = wire::CreditPool::communicator, .context = ContextId(8), .headers = 1}));
    expect_not_disconnected();
}

TEST_F(HostileCredit, returning_shared_credit_to_the_reserve_disconnects_the_peer) {
    send(kHostile, 100);
    says(Lane::control,
         said(wire::Credit{
             .pool = wire::CreditPool::communicator, .context = kWorld, .headers = 1}));
    expect_disconnected(Errc::protocol_violation, "more credit than it had received");
}

TEST_F(HostileCredit, returning_collective_credit_never_taken_disconnects_the_peer) {
    send(kHostile, 100);
    says(Lane::control,
         said(wire::Credit{.pool = wire::CreditPool::collective, .context = kWorld, .headers = 1}));
    expect_disconnected(Errc::protocol_violation, "more credit than it had received");
}

TEST_F(HostileCredit, returning_collective_reserve_credit_never_taken_disconnects_the_peer) {
    send(kHostile, 100);
    says(Lane::control,
         said(wire::Credit{
             .pool = wire::CreditPool::collective_reserve, .context = kWorld, .headers = 1}));
    expect_disconnected(Errc::protocol_violation, "more credit than it had received");
}

TEST_F(HostileCredit, sends_that_wait_for_credit_fail_when_the_peer_is_disconnected) {
    std::vector<Asked*> sent;
    for (std::uint32_t i = 0; i < limits_.shared.headers + limits_.reserve.headers + 3; ++i) {
        sent.push_back(&send(kHostile, 0));
    }
    pump();
    EXPECT_EQ(sent.back()->ended, 0);
    says(Lane::control, said(wire::Credit{.headers = limits_.shared.headers + 1}));
    expect_disconnected(Errc::protocol_violation, "more credit than it had received");
    ASSERT_EQ(sent.back()->ended, 1);
    ASSERT_TRUE(sent.back()->error());
    EXPECT_EQ(sent.back()->error()->code(), Errc::protocol_violation);
    EXPECT_EQ(sent.back()->error()->rank(), public_rank(kHostile));
    // Sends that start later fail as well.
    EXPECT_EQ(send(kHostile, 0).send.error->code(), Errc::protocol_violation);
    pump();
}

TEST_F(HostileCredit, a_peer_that_does_not_read_is_disconnected) {
    hostile_.set_room(Lane::control, 0);
    // The engine answers each message with a grant, and some with credit.
    for (std::uint64_t i = 0; i <= limits_.max_control_backlog && !hostile_.closed(); ++i) {
        auto made = header(i, 30 + i, 8);
        made.awaits_grant = true;
        receive(kHostile, 30 + i, 8);
        says(Lane::eager, bulk(made));
    }
    expect_disconnected(Errc::limit_exceeded, "does not read what this node sends");
}

}  // namespace
}  // namespace nexar::engine

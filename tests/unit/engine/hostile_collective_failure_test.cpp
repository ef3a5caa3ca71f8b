#include "hostile_collective.hpp"

namespace nexar::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class HostileCollectiveFailure : public HostileCollective {
protected:
    /// What this side says of its own call when it waits for the peer.
    std::string own_description() {
        pass(milliseconds(200));
        const auto said = heard<wire::CollectiveMismatch>(hostile_);
        return said.empty() ? std::string() : said.back().description;
    }

    /// A call that ended well, number `number`.
    void barrier_is_over(std::uint64_t number) {
        Asked& asked = barrier();
        says_part(part(number, number, 0, asked.collective.terms.fingerprint));
        expect_ended_well(asked, {});
    }
};

TEST_F(HostileCollectiveFailure, an_abort_ends_the_operation_with_its_text) {
    Asked& asked = broadcast(100);
    says_abort(0, "the disk is full");
    expect_failed(asked, Errc::invalid_argument, "the disk is full");
    EXPECT_EQ(asked.error()->rank(), public_rank(kHostile));
    EXPECT_TRUE(heard<wire::CollectiveAbort>(hostile_).empty()) << "it knows";
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, an_abort_before_the_call_fails_the_call) {
    says_abort(1, "the disk is full");
    Asked& first = barrier();
    EXPECT_EQ(first.ended, 0);
    Asked& second = barrier();
    expect_failed(second, Errc::invalid_argument, "the disk is full");
    EXPECT_THAT(second.error()->what(), HasSubstr("barrier #1"));
    Asked& third = barrier();
    EXPECT_EQ(third.ended, 0);
    EXPECT_EQ(first.ended, 0);
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, of_two_aborts_before_the_call_the_first_counts) {
    says_abort(0, "the disk is full");
    says_abort(0, "the disk is on fire");
    expect_failed(barrier(), Errc::invalid_argument, "the disk is full");
}

TEST_F(HostileCollectiveFailure, a_member_that_is_gone_is_missed_by_all_later_calls) {
    Asked& before = barrier();
    Asked& during = barrier();
    Asked& behind = barrier();
    says_abort(1, "the disk is full", kHostile, true);
    EXPECT_EQ(before.ended, 0);
    expect_failed(during, Errc::invalid_argument, "barrier #1");
    expect_failed(behind, Errc::invalid_argument, "barrier #2");
    expect_failed(barrier(), Errc::invalid_argument, "the disk is full");
    EXPECT_TRUE(heard<wire::CollectiveAbort>(hostile_).empty()) << "it knows";
    says_part(part(0, 0, 0, before.collective.terms.fingerprint));
    expect_ended_well(before, {});
    says_mismatch(17, "barrier|dissemination");
    const auto answers = heard<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(answers.size(), 1U) << "who waits for a call that will never come is told";
    EXPECT_EQ(answers[0].operation, 17U);
    EXPECT_TRUE(answers[0].gone);
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, of_two_moments_at_which_members_went_the_earlier_counts) {
    Asked& first = barrier();
    Asked& second = barrier();
    says_abort(1, "the disk is full", kHostile, true);
    says_abort(5, "the disk is on fire", kHostile, true);
    expect_failed(second, Errc::invalid_argument, "the disk is full");
    EXPECT_EQ(first.ended, 0);
    says_abort(0, "the disk is on fire", kHostile, true);
    expect_failed(first, Errc::invalid_argument, "the disk is on fire");
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, a_communicator_that_the_peer_ended_runs_nothing_more) {
    Asked& first = barrier();
    Asked& second = barrier();
    says(Lane::eager, said(wire::ContextEnd{.context = kDuo, .collectives = 1}));
    expect_failed(second, Errc::closed, "ended its communicator");
    expect_failed(barrier(), Errc::closed, "ended its communicator");
    EXPECT_EQ(first.ended, 0);
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, an_abort_takes_early_messages_with_it) {
    const std::uint64_t print = fingerprint(broadcast_call(300), 0);
    streams(part_stream(0) + pattern(1, 100));
    says_part(part(0, 0, 300, print, PayloadPlace::stream));
    says_part(part(1, 0, 300, print));
    says_abort(0, "the disk is full");
    EXPECT_EQ(hostile_.incoming(), 1U);
    expect_failed(broadcast(300), Errc::invalid_argument, "the disk is full");
    EXPECT_EQ(hostile_.incoming(), 0U);
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, an_abort_of_an_operation_that_is_over_is_ignored) {
    barrier_is_over(0);
    says_abort(0, "the disk is full");
    Asked& next = barrier();
    EXPECT_EQ(next.ended, 0);
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, an_abort_that_blames_nobody_is_its_senders) {
    Asked& asked = barrier();
    says_abort(0, "somebody failed", Rank(4'000'000));
    expect_failed(asked, Errc::invalid_argument, "somebody failed");
    EXPECT_EQ(asked.error()->rank(), public_rank(kHostile));
    says_abort(1, "somebody failed", Rank(2));
    EXPECT_EQ(barrier().error()->rank(), public_rank(kHostile));
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, a_call_that_is_the_same_is_not_a_mismatch) {
    Asked& asked = broadcast(100);
    const std::string own = own_description();
    EXPECT_THAT(own, HasSubstr("broadcast u8 x 100"));
    says_mismatch(0, own);
    EXPECT_EQ(asked.ended, 0);
    says_part(part(0, 0, 100, asked.collective.terms.fingerprint));
    expect_ended_well(asked, pattern(1, 100));
}

TEST_F(HostileCollectiveFailure, a_call_that_is_another_ends_the_operation_with_both) {
    Asked& asked = broadcast(100);
    says_mismatch(0, "all_reduce f32 x 7 sum|ring");
    expect_failed(asked, Errc::invalid_argument, "all_reduce f32 x 7 sum");
    EXPECT_THAT(asked.error()->what(), HasSubstr("broadcast u8 x 100"));
    EXPECT_THAT(asked.error()->what(), HasSubstr("rank 0"));
    EXPECT_THAT(asked.error()->what(), HasSubstr("rank 1"));
    const auto aborts = heard<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(aborts.size(), 1U);
    EXPECT_THAT(aborts[0].text, HasSubstr("all_reduce f32 x 7 sum"));
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, accepts_any_description) {
    for (const std::string text : {"|", " ", "|||", "broadcast", "broadcast ", "broadcast|",
                                   "broadcast u8 x 100, root 1|"}) {
        SCOPED_TRACE(text);
        Asked& asked = broadcast(100);
        says_mismatch(asked.collective.number, text);
        EXPECT_EQ(asked.ended, 1);
    }
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, bytes_that_nobody_meant_to_send_are_not_waited_for) {
    Asked& asked = call_in(*duo_, 100, exchange_call(100));
    const std::string own = own_description();
    EXPECT_EQ(heard<wire::CollectiveMismatch>(hostile_).back().expects, 100U);
    says_mismatch(0, own, 0);  // it waits for something else
    EXPECT_EQ(asked.ended, 0);
    says_mismatch(0, own, 20);
    expect_failed(asked, Errc::invalid_argument,
                  "rank 0 sends 0 bytes to rank 1, which expects 20");
    EXPECT_EQ(heard<wire::CollectiveAbort>(hostile_).size(), 1U);
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, bytes_that_nobody_meant_to_send_are_denied_afterwards) {
    Asked& asked = call_in(*duo_, 100, exchange_call(100));
    const std::string own = own_description();
    says_part(part(0, 0, 100, asked.collective.terms.fingerprint));
    expect_ended_well(asked, pattern(1, 100));
    says_mismatch(0, own, 20);
    const auto aborts = heard<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(aborts.size(), 1U);
    EXPECT_THAT(aborts[0].text, HasSubstr("rank 0 sends 0 bytes to rank 1, which expects 20"));
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, bytes_that_are_on_their_way_are_not_denied) {
    Asked& asked = broadcast(100);
    says_mismatch(0, own_description(), 20);  // all know how much everybody has
    EXPECT_EQ(asked.ended, 0);
    EXPECT_TRUE(heard<wire::CollectiveAbort>(hostile_).empty());
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, a_message_with_counts_for_a_call_that_ended_well_is_answered) {
    Asked& asked = call_in(*duo_, 0, exchange_call(0));
    const std::uint64_t print = asked.collective.terms.fingerprint;
    expect_ended_well(asked, {});
    says_part(part(0, 0, 30, print));
    auto aborts = heard<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(aborts.size(), 1U);
    EXPECT_EQ(aborts[0].operation, 0U);
    EXPECT_THAT(aborts[0].text, HasSubstr("rank 1 sends 30 bytes to rank 0, which expects 0"));
    says_part(part(1, 0, 300, print, PayloadPlace::stream));
    aborts = heard<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(aborts.size(), 2U);
    EXPECT_THAT(aborts[1].text, HasSubstr("rank 1 sends 300 bytes"));
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, a_message_of_another_call_for_one_that_ended_well_is_answered) {
    barrier_is_over(0);
    says_part(part(1, 0, 30, 4711));
    const auto said = heard<wire::CollectiveMismatch>(hostile_);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0].operation, 0U);
    EXPECT_THAT(said[0].description, HasSubstr("barrier"));
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, a_message_for_a_call_that_failed_is_dropped) {
    Asked& asked = call_in(*duo_, 100, exchange_call(100));
    says_abort(0, "the disk is full");
    expect_failed(asked, Errc::invalid_argument, "the disk is full");
    says_part(part(0, 0, 30, asked.collective.terms.fingerprint));
    says_part(part(1, 0, 30, 4711));
    EXPECT_TRUE(heard<wire::CollectiveAbort>(hostile_).empty());
    EXPECT_TRUE(heard<wire::CollectiveMismatch>(hostile_).empty());
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, a_peer_that_does_not_read_answers_to_late_messages_is_cut_off) {
    Asked& asked = call_in(*duo_, 0, exchange_call(0));
    hostile_.set_room(Lane::eager, 0);
    const std::size_t most = collective_options().collectives.max_answers;
    for (std::size_t i = 0; i < most; ++i) {
        says_part(part(i, 0, 1, asked.collective.terms.fingerprint));
    }
    expect_not_cut_off();
    says_part(part(most, 0, 1, asked.collective.terms.fingerprint));
    expect_cut_off(Errc::limit_exceeded, "does not read what this node sends");
}

TEST_F(HostileCollectiveFailure, a_mismatch_with_a_call_that_is_over_is_answered) {
    barrier_is_over(0);
    says_mismatch(0, "broadcast u8 x 9, root 0|chain");
    const auto aborts = heard<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(aborts.size(), 1U);
    EXPECT_EQ(aborts[0].operation, 0U);
    EXPECT_THAT(aborts[0].text, HasSubstr("barrier"));
    EXPECT_THAT(aborts[0].text, HasSubstr("broadcast u8 x 9"));
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, a_mismatch_with_a_call_that_is_long_over_is_ignored) {
    for (std::uint64_t i = 0; i <= ContextCollectives::kPast; ++i) barrier_is_over(i);
    says_mismatch(0, "broadcast u8 x 9, root 0|chain");
    EXPECT_TRUE(heard<wire::CollectiveAbort>(hostile_).empty());
    says_mismatch(1, "broadcast u8 x 9, root 0|chain");
    EXPECT_EQ(heard<wire::CollectiveAbort>(hostile_).size(), 1U);
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, a_mismatch_with_a_call_to_come_is_ignored) {
    says_mismatch(0, "broadcast u8 x 9, root 0|chain");
    says_mismatch(~std::uint64_t{0}, "broadcast u8 x 9, root 0|chain");
    Asked& asked = barrier();
    EXPECT_EQ(asked.ended, 0);
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, a_peer_that_does_not_read_answers_to_its_mismatches_is_cut_off) {
    barrier_is_over(0);
    hostile_.set_room(Lane::eager, 0);
    for (std::size_t i = 0; i < collective_options().collectives.max_answers; ++i) {
        says_mismatch(0, "broadcast u8 x 9, root 0|chain");
    }
    expect_not_cut_off();
    says_mismatch(0, "broadcast u8 x 9, root 0|chain");
    expect_cut_off(Errc::limit_exceeded, "does not read what this node sends");
}

TEST_F(HostileCollectiveFailure, another_fingerprint_is_answered_and_its_reason_waited_for) {
    Asked& asked = broadcast(100);
    says_part(part(0, 0, 100, 4711));
    EXPECT_EQ(asked.ended, 0);
    const auto said = heard<wire::CollectiveMismatch>(hostile_);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_THAT(said[0].description, HasSubstr("broadcast u8 x 100, root 1"));
    // What it sends as the right call comes too late.
    says_part(part(1, 0, 100, asked.collective.terms.fingerprint));
    EXPECT_EQ(asked.ended, 0);
    pass(milliseconds(4999));
    EXPECT_EQ(asked.ended, 0);
    pass(milliseconds(1));
    expect_failed(asked, Errc::link_closed, "rank 1 abandoned its part without giving a reason");
    EXPECT_EQ(asked.memory, Bytes(100));
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, another_fingerprint_of_an_early_message_is_answered) {
    says_part(part(0, 0, 100, 4711));
    Asked& asked = broadcast(100);
    ASSERT_EQ(heard<wire::CollectiveMismatch>(hostile_).size(), 1U);
    says_abort(0, "broadcast #0: rank 1 called 99, rank 0 called 100");
    expect_failed(asked, Errc::invalid_argument, "rank 1 called 99");
}

TEST_F(HostileCollectiveFailure, an_operation_that_nothing_comes_for_ends_in_time) {
    Asked& asked = broadcast(100);
    pass(milliseconds(59'999));
    EXPECT_EQ(asked.ended, 0);
    pass(milliseconds(1));
    expect_failed(asked, Errc::timed_out, "for rank 1");
    says_part(part(0, 0, 100, asked.collective.terms.fingerprint));
    EXPECT_EQ(asked.memory, Bytes(100));
    expect_not_cut_off();
}

TEST_F(HostileCollectiveFailure, all_members_except_the_failed_one_hear_of_a_failure) {
    Asked& asked = call_in(*world_, 0, barrier_call(3));
    says(Lane::eager, said(wire::CollectiveMismatch{
                          .context = kWorld, .operation = 0, .description = "scan f32 x 7|x"}));
    expect_failed(asked, Errc::invalid_argument, "scan f32 x 7");
    ASSERT_EQ(heard<wire::CollectiveAbort>(honest_).size(), 1U);
    EXPECT_THAT(heard<wire::CollectiveAbort>(honest_)[0].text, HasSubstr("scan f32 x 7"));
}

TEST_F(HostileCollectiveFailure, frames_of_a_communicator_that_ended_here_are_dropped) {
    barrier_is_over(0);
    engine_->end_context(*duo_);
    says_part(part(77, 9, 100, 1));
    says_part(part(78, 9, 100, 1, PayloadPlace::stream));
    says_abort(9, "the disk is full");
    says_mismatch(0, "broadcast u8 x 9, root 0|chain");
    expect_not_cut_off();
    // The lane is still understood.
    Asked& asked = receive(kHostile, 1, 30);
    says(Lane::eager, eager(header(0, 1, 30)));
    EXPECT_EQ(asked.ended, 1);
    EXPECT_EQ(asked.memory, pattern(1, 30));
}

TEST_F(HostileCollectiveFailure, a_communicator_ends_with_all_that_waits_in_it) {
    says_part(part(0, 3, 100, 1));
    streams(part_stream(1) + pattern(1, 100));
    says_part(part(1, 4, 500, 1, PayloadPlace::stream));
    says_part(part(2, 5, 500, 1, PayloadPlace::stream));
    streams(part_stream(5) + pattern(1, 100));
    says_abort(9, "the disk is full");
    // The rest of this one comes afterwards.
    const auto half = part(3, 6, 100, 1);
    says(Lane::eager, said(half) + pattern(7, 40));
    EXPECT_EQ(hostile_.incoming(), 2U);
    engine_->end_context(*duo_);
    pump();
    EXPECT_EQ(hostile_.incoming(), 0U);
    says(Lane::eager, pattern(8, 60));
    for (const std::uint64_t sequence : {2U, 5U, 6U}) {
        streams(part_stream(sequence) + pattern(1, 100));
        EXPECT_EQ(hostile_.incoming(), 0U);
    }
    says_part(part(4, 7, 10, 1));
    says(Lane::eager, said(wire::ContextEnd{.context = kDuo}));
    streams(part_stream(7) + pattern(1, 100));
    EXPECT_EQ(hostile_.incoming(), 0U);
    expect_not_cut_off();
}

}  // namespace
}  // namespace nexar::engine

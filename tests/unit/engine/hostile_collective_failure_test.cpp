#include "hostile_collective.hpp"

namespace nexar::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class HostileCollectiveFailure : public HostileCollective {
protected:
    /// How this side describes its own call to a peer that it waits for.
    std::string own_description() {
        pass(milliseconds(200));
        const auto said = frames_sent_to<wire::CollectiveMismatch>(hostile_);
        return said.empty() ? std::string() : said.back().description;
    }

    /// Makes and completes call `number`, a barrier.
    void complete_barrier(std::uint64_t number) {
        Asked& asked = barrier();
        says_part(part(number, number, 0, asked.collective.terms.fingerprint));
        expect_succeeded(asked, {});
    }
};

TEST_F(HostileCollectiveFailure, an_abort_fails_the_operation_with_its_text) {
    Asked& asked = broadcast(100);
    says_abort(0, "the disk is full");
    expect_failed(asked, Errc::invalid_argument, "the disk is full");
    EXPECT_EQ(asked.error()->rank(), public_rank(kHostile));
    EXPECT_TRUE(frames_sent_to<wire::CollectiveAbort>(hostile_).empty()) << "the peer knows";
    expect_not_disconnected();
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
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, the_first_of_two_aborts_before_the_call_counts) {
    says_abort(0, "the disk is full");
    says_abort(0, "the disk is on fire");
    expect_failed(barrier(), Errc::invalid_argument, "the disk is full");
}

TEST_F(HostileCollectiveFailure, all_later_calls_fail_when_a_member_is_gone) {
    Asked& before = barrier();
    Asked& during = barrier();
    Asked& behind = barrier();
    says_abort(1, "the disk is full", kHostile, true);
    EXPECT_EQ(before.ended, 0);
    expect_failed(during, Errc::invalid_argument, "barrier #1");
    expect_failed(behind, Errc::invalid_argument, "barrier #2");
    expect_failed(barrier(), Errc::invalid_argument, "the disk is full");
    EXPECT_TRUE(frames_sent_to<wire::CollectiveAbort>(hostile_).empty()) << "the peer knows";
    says_part(part(0, 0, 0, before.collective.terms.fingerprint));
    expect_succeeded(before, {});
    says_mismatch(17, "barrier|dissemination");
    const auto answers = frames_sent_to<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(answers.size(), 1U)
        << "the peer learns that the call it waits for will never be made";
    EXPECT_EQ(answers[0].operation, 17U);
    EXPECT_TRUE(answers[0].gone);
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, the_earliest_reported_departure_counts) {
    Asked& first = barrier();
    Asked& second = barrier();
    says_abort(1, "the disk is full", kHostile, true);
    says_abort(5, "the disk is on fire", kHostile, true);
    expect_failed(second, Errc::invalid_argument, "the disk is full");
    EXPECT_EQ(first.ended, 0);
    says_abort(0, "the disk is on fire", kHostile, true);
    expect_failed(first, Errc::invalid_argument, "the disk is on fire");
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, calls_fail_in_a_communicator_that_the_peer_ended) {
    Asked& first = barrier();
    Asked& second = barrier();
    says(Lane::eager, said(wire::ContextEnd{.context = kDuo, .collectives = 1}));
    expect_failed(second, Errc::closed, "ended its communicator");
    expect_failed(barrier(), Errc::closed, "ended its communicator");
    EXPECT_EQ(first.ended, 0);
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, an_abort_drops_early_messages) {
    const std::uint64_t print = fingerprint(broadcast_call(300), 0);
    streams(part_stream(0) + pattern(1, 100));
    says_part(part(0, 0, 300, print, PayloadPlace::stream));
    says_part(part(1, 0, 300, print));
    says_abort(0, "the disk is full");
    EXPECT_EQ(hostile_.incoming(), 1U);
    expect_failed(broadcast(300), Errc::invalid_argument, "the disk is full");
    EXPECT_EQ(hostile_.incoming(), 0U);
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, an_abort_of_a_completed_operation_is_ignored) {
    complete_barrier(0);
    says_abort(0, "the disk is full");
    Asked& next = barrier();
    EXPECT_EQ(next.ended, 0);
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, an_abort_with_an_invalid_rank_is_attributed_to_its_sender) {
    Asked& asked = barrier();
    says_abort(0, "somebody failed", Rank(4'000'000));
    expect_failed(asked, Errc::invalid_argument, "somebody failed");
    EXPECT_EQ(asked.error()->rank(), public_rank(kHostile));
    says_abort(1, "somebody failed", Rank(2));
    EXPECT_EQ(barrier().error()->rank(), public_rank(kHostile));
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, an_equal_description_is_not_a_mismatch) {
    Asked& asked = broadcast(100);
    const std::string own = own_description();
    EXPECT_THAT(own, HasSubstr("broadcast u8 x 100"));
    says_mismatch(0, own);
    EXPECT_EQ(asked.ended, 0);
    says_part(part(0, 0, 100, asked.collective.terms.fingerprint));
    expect_succeeded(asked, pattern(1, 100));
}

TEST_F(HostileCollectiveFailure, a_different_call_fails_the_operation_and_the_error_names_both) {
    Asked& asked = broadcast(100);
    says_mismatch(0, "all_reduce f32 x 7 sum|ring");
    expect_failed(asked, Errc::invalid_argument, "all_reduce f32 x 7 sum");
    EXPECT_THAT(asked.error()->what(), HasSubstr("broadcast u8 x 100"));
    EXPECT_THAT(asked.error()->what(), HasSubstr("rank 0"));
    EXPECT_THAT(asked.error()->what(), HasSubstr("rank 1"));
    const auto aborts = frames_sent_to<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(aborts.size(), 1U);
    EXPECT_THAT(aborts[0].text, HasSubstr("all_reduce f32 x 7 sum"));
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, accepts_any_description) {
    for (const std::string text : {"|", " ", "|||", "broadcast", "broadcast ", "broadcast|",
                                   "broadcast u8 x 100, root 1|"}) {
        SCOPED_TRACE(text);
        Asked& asked = broadcast(100);
        says_mismatch(asked.collective.number, text);
        EXPECT_EQ(asked.ended, 1);
    }
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, fails_when_the_peer_expects_bytes_that_this_rank_does_not_send) {
    Asked& asked = call_in(*duo_, 100, exchange_call(100));
    const std::string own = own_description();
    EXPECT_EQ(frames_sent_to<wire::CollectiveMismatch>(hostile_).back().expects, 100U);
    says_mismatch(0, own, 0);  // the peer waits for something else
    EXPECT_EQ(asked.ended, 0);
    says_mismatch(0, own, 20);
    expect_failed(asked, Errc::invalid_argument,
                  "rank 0 sends 0 bytes to rank 1, which expects 20");
    EXPECT_EQ(frames_sent_to<wire::CollectiveAbort>(hostile_).size(), 1U);
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, a_wrong_byte_expectation_is_answered_after_the_call_ended) {
    Asked& asked = call_in(*duo_, 100, exchange_call(100));
    const std::string own = own_description();
    says_part(part(0, 0, 100, asked.collective.terms.fingerprint));
    expect_succeeded(asked, pattern(1, 100));
    says_mismatch(0, own, 20);
    const auto aborts = frames_sent_to<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(aborts.size(), 1U);
    EXPECT_THAT(aborts[0].text, HasSubstr("rank 0 sends 0 bytes to rank 1, which expects 20"));
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, a_byte_expectation_is_ignored_in_calls_without_counts) {
    Asked& asked = broadcast(100);
    says_mismatch(0, own_description(), 20);  // every rank knows all sizes of a broadcast
    EXPECT_EQ(asked.ended, 0);
    EXPECT_TRUE(frames_sent_to<wire::CollectiveAbort>(hostile_).empty());
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, a_late_message_with_counts_for_a_completed_call_is_answered) {
    Asked& asked = call_in(*duo_, 0, exchange_call(0));
    const std::uint64_t print = asked.collective.terms.fingerprint;
    expect_succeeded(asked, {});
    says_part(part(0, 0, 30, print));
    auto aborts = frames_sent_to<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(aborts.size(), 1U);
    EXPECT_EQ(aborts[0].operation, 0U);
    EXPECT_THAT(aborts[0].text, HasSubstr("rank 1 sends 30 bytes to rank 0, which expects 0"));
    says_part(part(1, 0, 300, print, PayloadPlace::stream));
    aborts = frames_sent_to<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(aborts.size(), 2U);
    EXPECT_THAT(aborts[1].text, HasSubstr("rank 1 sends 300 bytes"));
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, a_message_of_a_different_call_for_a_completed_one_is_answered) {
    complete_barrier(0);
    says_part(part(1, 0, 30, 4711));
    const auto said = frames_sent_to<wire::CollectiveMismatch>(hostile_);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0].operation, 0U);
    EXPECT_THAT(said[0].description, HasSubstr("barrier"));
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, a_message_for_a_failed_call_is_dropped) {
    Asked& asked = call_in(*duo_, 100, exchange_call(100));
    says_abort(0, "the disk is full");
    expect_failed(asked, Errc::invalid_argument, "the disk is full");
    says_part(part(0, 0, 30, asked.collective.terms.fingerprint));
    says_part(part(1, 0, 30, 4711));
    EXPECT_TRUE(frames_sent_to<wire::CollectiveAbort>(hostile_).empty());
    EXPECT_TRUE(frames_sent_to<wire::CollectiveMismatch>(hostile_).empty());
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, a_peer_that_reads_no_answers_to_late_messages_is_disconnected) {
    Asked& asked = call_in(*duo_, 0, exchange_call(0));
    hostile_.set_room(Lane::eager, 0);
    const std::size_t most = collective_options().collectives.max_answers;
    for (std::size_t i = 0; i < most; ++i) {
        says_part(part(i, 0, 1, asked.collective.terms.fingerprint));
    }
    expect_not_disconnected();
    says_part(part(most, 0, 1, asked.collective.terms.fingerprint));
    expect_disconnected(Errc::limit_exceeded, "does not read what this node sends");
}

TEST_F(HostileCollectiveFailure, a_mismatch_with_a_completed_call_is_answered) {
    complete_barrier(0);
    says_mismatch(0, "broadcast u8 x 9, root 0|chain");
    const auto aborts = frames_sent_to<wire::CollectiveAbort>(hostile_);
    ASSERT_EQ(aborts.size(), 1U);
    EXPECT_EQ(aborts[0].operation, 0U);
    EXPECT_THAT(aborts[0].text, HasSubstr("barrier"));
    EXPECT_THAT(aborts[0].text, HasSubstr("broadcast u8 x 9"));
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, a_mismatch_with_a_call_completed_long_ago_is_ignored) {
    for (std::uint64_t i = 0; i <= ContextCollectives::kPast; ++i) complete_barrier(i);
    says_mismatch(0, "broadcast u8 x 9, root 0|chain");
    EXPECT_TRUE(frames_sent_to<wire::CollectiveAbort>(hostile_).empty());
    says_mismatch(1, "broadcast u8 x 9, root 0|chain");
    EXPECT_EQ(frames_sent_to<wire::CollectiveAbort>(hostile_).size(), 1U);
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, a_mismatch_with_a_future_call_is_ignored) {
    says_mismatch(0, "broadcast u8 x 9, root 0|chain");
    says_mismatch(~std::uint64_t{0}, "broadcast u8 x 9, root 0|chain");
    Asked& asked = barrier();
    EXPECT_EQ(asked.ended, 0);
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, a_peer_that_reads_no_answers_to_its_mismatches_is_disconnected) {
    complete_barrier(0);
    hostile_.set_room(Lane::eager, 0);
    for (std::size_t i = 0; i < collective_options().collectives.max_answers; ++i) {
        says_mismatch(0, "broadcast u8 x 9, root 0|chain");
    }
    expect_not_disconnected();
    says_mismatch(0, "broadcast u8 x 9, root 0|chain");
    expect_disconnected(Errc::limit_exceeded, "does not read what this node sends");
}

TEST_F(HostileCollectiveFailure,
       a_different_fingerprint_is_answered_and_the_call_awaits_the_reason) {
    Asked& asked = broadcast(100);
    says_part(part(0, 0, 100, 4711));
    EXPECT_EQ(asked.ended, 0);
    const auto said = frames_sent_to<wire::CollectiveMismatch>(hostile_);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_THAT(said[0].description, HasSubstr("broadcast u8 x 100, root 1"));
    // A message with the right fingerprint arrives too late.
    says_part(part(1, 0, 100, asked.collective.terms.fingerprint));
    EXPECT_EQ(asked.ended, 0);
    pass(milliseconds(4999));
    EXPECT_EQ(asked.ended, 0);
    pass(milliseconds(1));
    expect_failed(asked, Errc::link_closed, "rank 1 abandoned its part without giving a reason");
    EXPECT_EQ(asked.memory, Bytes(100));
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, a_different_fingerprint_of_an_early_message_is_answered) {
    says_part(part(0, 0, 100, 4711));
    Asked& asked = broadcast(100);
    ASSERT_EQ(frames_sent_to<wire::CollectiveMismatch>(hostile_).size(), 1U);
    says_abort(0, "broadcast #0: rank 1 called 99, rank 0 called 100");
    expect_failed(asked, Errc::invalid_argument, "rank 1 called 99");
}

TEST_F(HostileCollectiveFailure, an_operation_times_out_when_no_message_arrives) {
    Asked& asked = broadcast(100);
    pass(milliseconds(59'999));
    EXPECT_EQ(asked.ended, 0);
    pass(milliseconds(1));
    expect_failed(asked, Errc::timed_out, "for rank 1");
    says_part(part(0, 0, 100, asked.collective.terms.fingerprint));
    EXPECT_EQ(asked.memory, Bytes(100));
    expect_not_disconnected();
}

TEST_F(HostileCollectiveFailure, a_timeout_may_have_begun_before_the_operation) {
    const TimePoint called = now_;
    pass(seconds(50));
    Asked& asked = call_in(*duo_, 100, [&](CollectiveOperation& operation) {
        broadcast_call(100)(operation);
        operation.timeout_began = called;
    });
    pass(milliseconds(9'999));
    EXPECT_EQ(asked.ended, 0);
    pass(milliseconds(1));
    expect_failed(asked, Errc::timed_out, "for rank 1");
}

TEST_F(HostileCollectiveFailure, all_members_except_the_failed_one_learn_of_a_failure) {
    Asked& asked = call_in(*world_, 0, barrier_call(3));
    says(Lane::eager, said(wire::CollectiveMismatch{
                          .context = kWorld, .operation = 0, .description = "scan f32 x 7|x"}));
    expect_failed(asked, Errc::invalid_argument, "scan f32 x 7");
    ASSERT_EQ(frames_sent_to<wire::CollectiveAbort>(honest_).size(), 1U);
    EXPECT_THAT(frames_sent_to<wire::CollectiveAbort>(honest_)[0].text, HasSubstr("scan f32 x 7"));
}

TEST_F(HostileCollectiveFailure, frames_of_a_communicator_that_ended_here_are_dropped) {
    complete_barrier(0);
    engine_->end_context(*duo_);
    says_part(part(77, 9, 100, 1));
    says_part(part(78, 9, 100, 1, PayloadPlace::stream));
    says_abort(9, "the disk is full");
    says_mismatch(0, "broadcast u8 x 9, root 0|chain");
    expect_not_disconnected();
    // The reader of the lane is still in sync.
    Asked& asked = receive(kHostile, 1, 30);
    says(Lane::eager, eager(header(0, 1, 30)));
    EXPECT_EQ(asked.ended, 1);
    EXPECT_EQ(asked.memory, pattern(1, 30));
}

TEST_F(HostileCollectiveFailure, ending_a_communicator_drops_everything_that_waits_in_it) {
    says_part(part(0, 3, 100, 1));
    streams(part_stream(1) + pattern(1, 100));
    says_part(part(1, 4, 500, 1, PayloadPlace::stream));
    says_part(part(2, 5, 500, 1, PayloadPlace::stream));
    streams(part_stream(5) + pattern(1, 100));
    says_abort(9, "the disk is full");
    // The rest of this payload arrives after the communicator has ended.
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
    expect_not_disconnected();
}

}  // namespace
}  // namespace nexar::engine

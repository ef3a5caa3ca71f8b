// Collectives that wait for others in shared memory, or for the memory itself, when a node is lost.

#include <memory>

#include "heap_segment.hpp"
#include "verdicts.hpp"

namespace nexar::engine {
namespace {

using nexar::testing::HeapSegment;

class EvictMemoryTest : public VerdictsTest {};

TEST_F(EvictMemoryTest, collective_that_was_reserved_fails_when_it_would_begin) {
    Asked& counts = asked_.emplace_back(0);
    Asked& after = asked_.emplace_back(0);
    prepare_barrier(*world_, counts);
    prepare_barrier(*world_, after);
    engine_->start(*world_, counts.collective, after.collective);
    evict_hostile();
    expect_lost(counts);
    EXPECT_EQ(after.ended, 0);
    engine_->begin(after.collective);
    pump();
    expect_lost(after);
    Asked& next = asked_.emplace_back(0);
    Asked& last = asked_.emplace_back(0);
    prepare_barrier(*world_, next);
    prepare_barrier(*world_, last);
    engine_->start(*world_, next.collective, last.collective);
    pump();
    expect_lost(next);
    expect_lost(last);
}

TEST_F(EvictMemoryTest, collectives_that_wait_for_shared_memory_end) {
    Context& fresh =
        engine_->add_context(ContextId(60), std::array{node(0), node(1), node(2)}, kMe);
    engine_->want_memory(fresh, 1 << 16);
    const Asked& held = barrier_in(fresh);
    const Asked& behind = barrier_in(fresh);
    EXPECT_EQ(held.ended, 0);
    evict_hostile();
    expect_lost(held);
    expect_lost(behind);
    expect_lost(barrier_in(fresh));
    Context& unused =
        engine_->add_context(ContextId(61), std::array{node(0), node(2), node(1)}, kMe);
    engine_->want_memory(unused, 1 << 16);
    expect_ended_with(barrier_in(unused), Errc::membership_changed, "rank 2 was lost");
}

TEST_F(EvictMemoryTest, collectives_that_wait_for_shared_memory_keep_their_own_deadlines) {
    Context& fresh =
        engine_->add_context(ContextId(60), std::array{node(0), node(1), node(2)}, kMe);
    engine_->want_memory(fresh, 1 << 16);
    const Asked& patient = barrier_in(fresh, 60s);
    const Asked& hasty = barrier_in(fresh, 1s);
    const auto at = [&, begin = now_](Duration time) {
        // The agreement ends first, and then the calls that waited for it.
        for (int turn = 0; turn < 2; ++turn) {
            engine_->advance(begin + time);
            pump();
        }
    };
    at(999ms);
    EXPECT_EQ(hasty.ended, 0);
    at(1s);
    expect_ended_with(hasty, Errc::timed_out, "waited 1.0 s in barrier");
    at(59'999ms);
    EXPECT_EQ(patient.ended, 0);
    at(60s);
    expect_ended_with(patient, Errc::timed_out, "waited 60.0 s in barrier");
}

TEST_F(EvictMemoryTest, collectives_in_shared_memory_end_and_the_segments_are_let_go) {
    auto segments = nexar::testing::heap_segments(3, 1 << 16);
    Context& fresh =
        engine_->add_context(ContextId(60), std::array{node(0), node(1), node(2)}, kMe);
    ASSERT_TRUE(engine_->set_memory(fresh, segments[0], nexar::testing::others_of(segments, 0)));
    std::vector<std::weak_ptr<HeapSegment>> watched(segments.begin(), segments.end());
    segments.clear();
    const Asked& first = barrier_in(fresh);
    const Asked& second = barrier_in(fresh);
    EXPECT_EQ(first.ended, 0);
    EXPECT_FALSE(watched[1].expired());
    evict_hostile();
    expect_lost(first);
    expect_lost(second);
    for (const auto& segment : watched) EXPECT_TRUE(segment.expired());
    expect_lost(barrier_in(fresh));
    EXPECT_FALSE(engine_->poll_memory());
}

TEST_F(EvictMemoryTest, memory_that_the_lost_node_shared_is_let_go) {
    const auto share = [&](FakeLink& link, std::uint64_t name) {
        const auto memory = std::make_shared<HeapSegment>(1 << 12);
        engine_->handle({.link = link.id(), .what = port::Shared{.name = name, .memory = memory}});
        return std::weak_ptr<HeapSegment>(memory);
    };
    const std::uint64_t buffer = kBufferNames << 32U | 1U;
    const auto of_lost = {share(hostile_, kWorld.value()), share(hostile_, buffer)};
    const auto of_other = {share(honest_, kStaying.value()), share(honest_, buffer)};
    const auto of_world = share(honest_, kWorld.value());
    evict_hostile();
    hostile_.go_down(Error(Errc::link_closed, "dropped"));
    pump();
    for (const auto& memory : of_lost) EXPECT_TRUE(memory.expired());
    EXPECT_TRUE(of_world.expired());
    for (const auto& memory : of_other) EXPECT_FALSE(memory.expired());
    EXPECT_TRUE(share(honest_, kWorld.value()).expired());
}

}  // namespace
}  // namespace nexar::engine

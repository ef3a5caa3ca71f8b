#include "base/recorder.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

namespace nexar {
namespace {

RecordedEvent numbered(std::uint64_t n) {
    return {.time = TimePoint(Duration(static_cast<std::int64_t>(1000 + n))),
            .kind = EventKind::mark,
            .a = static_cast<std::uint16_t>(n * 3),
            .b = static_cast<std::uint32_t>(n * 5),
            .c = n,
            .d = ~n};
}

TEST(Recorder, snapshot_returns_every_field) {
    Recorder recorder({.events_per_thread = 4});
    const RecordedEvent extreme{.time = TimePoint::min(),
                                .kind = static_cast<EventKind>(0xfedc),
                                .a = 0xba98,
                                .b = 0x76543210,
                                .c = std::numeric_limits<std::uint64_t>::max(),
                                .d = 0x0123456789abcdef};
    recorder.record(extreme);
    const auto snapshot = recorder.snapshot();
    ASSERT_EQ(snapshot.events.size(), 1U);
    EXPECT_EQ(snapshot.events[0].event, extreme);
    EXPECT_EQ(snapshot.events[0].thread, thread_index());
}

TEST(Recorder, keeps_the_latest_events_and_counts_overwritten_ones) {
    constexpr std::uint64_t kKept = 8;
    Recorder recorder({.events_per_thread = kKept});
    for (std::uint64_t n = 0; n < 30; ++n) {
        const auto snapshot = recorder.snapshot();
        const std::uint64_t first = n < kKept ? 0 : n - kKept;
        EXPECT_EQ(snapshot.overwritten, first);
        ASSERT_EQ(snapshot.events.size(), n - first);
        for (std::uint64_t i = first; i < n; ++i) {
            EXPECT_EQ(snapshot.events[i - first].event, numbered(i));
            EXPECT_EQ(snapshot.events[i - first].number, i);
        }
        recorder.record(numbered(n));
    }
}

TEST(Recorder, rounds_the_size_of_a_ring_up_to_a_power_of_two) {
    Recorder recorder({.events_per_thread = 5});
    for (std::uint64_t n = 0; n < 100; ++n) recorder.record(numbered(n));
    EXPECT_EQ(recorder.snapshot().events.size(), 8U);
}

TEST(Recorder, sorts_by_time_and_keeps_the_order_of_equal_times) {
    Recorder recorder({.events_per_thread = 8});
    const auto at = [](std::int64_t time, std::uint64_t c) {
        return RecordedEvent{.time = TimePoint(Duration(time)), .kind = EventKind::mark, .c = c};
    };
    for (const RecordedEvent& event : {at(3, 0), at(1, 1), at(3, 2), at(2, 3)})
        recorder.record(event);
    std::vector<std::uint64_t> order;
    for (const auto& recorded : recorder.snapshot().events) order.push_back(recorded.event.c);
    EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 3, 0, 2}));
}

TEST(Recorder, records_nothing_when_off) {
    Recorder recorder({.events_per_thread = 0});
    EXPECT_FALSE(recorder.on());
    recorder.record(numbered(1));
    const auto snapshot = recorder.snapshot();
    EXPECT_TRUE(snapshot.events.empty());
    EXPECT_EQ(snapshot.dropped, 0U);
}

TEST(Recorder, counts_events_without_a_ring) {
    Recorder recorder({.events_per_thread = 8, .threads = 0});
    EXPECT_TRUE(recorder.on());
    for (std::uint64_t n = 0; n < 3; ++n) recorder.record(numbered(n));
    const auto snapshot = recorder.snapshot();
    EXPECT_TRUE(snapshot.events.empty());
    EXPECT_EQ(snapshot.dropped, 3U);
}

TEST(Recorder, one_thread_can_use_several_recorders) {
    Recorder first({.events_per_thread = 4});
    Recorder second({.events_per_thread = 4});
    first.record(numbered(1));
    second.record(numbered(2));
    EXPECT_EQ(first.snapshot().events.at(0).event, numbered(1));
    EXPECT_EQ(second.snapshot().events.at(0).event, numbered(2));
}

TEST(Recorder, names_every_kind_of_event) {
    std::set<std::string_view> names;
    for (const EventKind kind : kEventKinds) names.insert(name(kind));
    EXPECT_EQ(names.size(), kEventKinds.size());
    EXPECT_FALSE(names.contains("unknown"));
    EXPECT_EQ(name(static_cast<EventKind>(0)), "unknown");
}

// Trace files of older versions must keep their meaning.
TEST(Recorder, numbers_of_kinds_are_stable) {
    EXPECT_EQ(static_cast<int>(EventKind::mark), 1);
    EXPECT_EQ(static_cast<int>(EventKind::send_started), 16);
    EXPECT_EQ(static_cast<int>(EventKind::receive_ended), 21);
    EXPECT_EQ(static_cast<int>(EventKind::collective_started), 32);
    EXPECT_EQ(static_cast<int>(EventKind::agreement_ended), 37);
    EXPECT_EQ(static_cast<int>(EventKind::message_matched), 48);
    EXPECT_EQ(static_cast<int>(EventKind::link_down), 65);
    EXPECT_EQ(static_cast<int>(EventKind::communicator_ended), 81);
    EXPECT_EQ(static_cast<int>(WaitReason::match), 4);
}

TEST(Recorder, packs_a_subject_and_a_detail_into_one_word) {
    for (const std::uint32_t subject : {0U, 1U, 70'000U, kAnyRank - 1, kAnyRank}) {
        for (const int detail : {0, 1, 402, 4095}) {
            const std::uint32_t word = event_word(subject, static_cast<std::uint16_t>(detail));
            EXPECT_EQ(event_subject(word), subject);
            EXPECT_EQ(event_detail(word), detail);
        }
    }
    EXPECT_EQ(event_subject(event_word(2'000'000, 402)), kAnyRank);
    EXPECT_EQ(event_detail(event_word(2'000'000, 402)), 402);
}

TEST(RecorderDeathTest, asserts_on_options_beyond_its_limits) {
    EXPECT_DEATH(Recorder({.events_per_thread = Recorder::kMaxEventsPerThread + 1}), "2\\^20");
    EXPECT_DEATH(Recorder({.threads = kThreadIndexes + 1}), "kThreadIndexes rings");
}

}  // namespace
}  // namespace nexar

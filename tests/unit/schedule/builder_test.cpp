#include "schedule/builder.hpp"

#include <gtest/gtest.h>

namespace nexar::schedule {
namespace {

constexpr Slice kOutput{Space::output, 0, 12};

std::vector<Dependency> waits(const Schedule& schedule, std::size_t step) {
    const auto found = schedule.dependencies_of(step);
    return {found.begin(), found.end()};
}

using Waits = std::vector<Dependency>;

TEST(Builder, makes_a_read_wait_for_the_last_write_of_the_same_elements) {
    Builder builder;
    builder.receive(1, part(kOutput, 0, 6));
    builder.receive(2, part(kOutput, 6, 6));
    builder.send(3, part(kOutput, 4, 4));
    builder.send(3, part(kOutput, 6, 2));
    const Schedule schedule = std::move(builder).build();
    EXPECT_EQ(waits(schedule, 2), (Waits{{0}, {1}}));
    EXPECT_EQ(waits(schedule, 3), (Waits{{1}}));
}

TEST(Builder, makes_an_overwrite_wait_for_the_release_of_every_send) {
    Builder builder;
    builder.send(1, part(kOutput, 0, 8));
    builder.send(2, part(kOutput, 4, 8));
    builder.copy(part(kOutput, 8, 2), {Space::scratch, 0, 2});
    builder.receive(3, part(kOutput, 6, 4));
    const Schedule schedule = std::move(builder).build();
    EXPECT_EQ(waits(schedule, 3), (Waits{{0, Milestone::released}, {1, Milestone::released}, {2}}));
}

TEST(Builder, leaves_out_dependencies_that_others_imply) {
    Builder builder;
    builder.receive(1, kOutput);                                       // 0
    builder.receive_reduce(2, kOutput, kOutput, compute::Side::left);  // 1 waits for 0
    builder.send(3, kOutput);                                          // 2 waits for 1, not for 0
    builder.receive(3, kOutput);  // 3 waits only for the release
    const Schedule schedule = std::move(builder).build();
    EXPECT_EQ(waits(schedule, 1), (Waits{{0}}));
    EXPECT_EQ(waits(schedule, 2), (Waits{{1}}));
    EXPECT_EQ(waits(schedule, 3), (Waits{{2, Milestone::released}}));
}

TEST(Builder, does_not_mistake_finished_for_released) {
    Builder builder;
    builder.send(1, kOutput);                                // 0
    const auto signal = builder.receive_signal(1);           // 1
    builder.after(signal, std::vector<Builder::StepId>{0});  // until it has finished
    builder.receive(2, kOutput);                             // 2
    builder.after(2, std::vector<Builder::StepId>{signal});
    const Schedule schedule = std::move(builder).build();
    EXPECT_EQ(waits(schedule, 2), (Waits{{0, Milestone::released}, {1}}));
}

TEST(Builder, pipelines_steps_that_forward_the_same_slice) {
    Builder builder(4);
    builder.receive(1, kOutput);
    builder.send(2, kOutput);
    builder.send(3, part(kOutput, 1, 11));
    builder.receive(1, part(kOutput, 0, 3));
    const Schedule schedule = std::move(builder).build();
    EXPECT_EQ(schedule.steps[0].segments(), 3U);
    EXPECT_EQ(waits(schedule, 1), (Waits{{0, Milestone::finished, true}}));
    EXPECT_EQ(waits(schedule, 2), (Waits{{0, Milestone::finished, false}}));
    EXPECT_EQ(waits(schedule, 3), (Waits{{1, Milestone::released}, {2, Milestone::released}}));
    EXPECT_EQ(schedule.steps[3].segments(), 1U);
}

TEST(Builder, drops_steps_without_elements_and_numbers_messages_per_peer) {
    Builder builder;
    EXPECT_EQ(builder.send(1, part(kOutput, 3, 0)), Builder::kNone);
    EXPECT_EQ(builder.copy(kOutput, kOutput), Builder::kNone);
    builder.send(1, kOutput);
    builder.send(2, kOutput);
    builder.send(1, kOutput);
    builder.receive(1, {Space::scratch, 0, 1});
    const Schedule schedule = std::move(builder).build();
    ASSERT_EQ(schedule.steps.size(), 4U);
    EXPECT_EQ(schedule.steps[0].message, 0U);
    EXPECT_EQ(schedule.steps[1].message, 0U);
    EXPECT_EQ(schedule.steps[2].message, 1U);
    EXPECT_EQ(schedule.steps[3].message, 0U);
}

TEST(Builder, returns_scratch_slices_that_do_not_overlap) {
    Builder builder;
    const Slice a = builder.scratch(5);
    const Slice b = builder.scratch(7);
    EXPECT_FALSE(overlap(a, b));
    EXPECT_EQ(std::move(builder).build().scratch, 12U);
}

TEST(Schedule, prints_what_each_step_does_and_waits_for) {
    Builder builder(4);
    builder.receive_reduce(1, kOutput, {Space::input, 0, 12}, compute::Side::right);
    builder.send(2, kOutput);
    builder.receive(2, part(kOutput, 0, 3));
    EXPECT_EQ(to_text(std::move(builder).build()),
              "   0  output[0+12] = input[0+12] op receive from 1 #0 in segments of 4\n"
              "   1  send output[0+12] to 2 #0 in segments of 4 after 0~\n"
              "   2  output[0+3] = receive from 2 #0 after 1r\n"
              "scratch 0\n");
}

}  // namespace
}  // namespace nexar::schedule

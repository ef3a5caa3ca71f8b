#include "bench/ceiling.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace nexar::bench {
namespace {

using schedule::Collective;

constexpr std::uint64_t kBytes = 1200;

Subject collective(Collective operation) {
    return {.kind = Subject::Kind::collective, .operation = operation};
}

double moved(Collective operation, std::uint32_t world) {
    return moved_bytes(collective(operation), world, kBytes);
}

double memory(Collective operation, std::uint32_t world) {
    return memory_bytes(collective(operation), world, kBytes);
}

TEST(BenchCeiling, moved_bytes_are_what_other_ranks_need) {
    // Three ranks with 1200 bytes: each chunk has 400.
    EXPECT_EQ(moved(Collective::all_reduce, 3), 4800) << "each rank sends and receives 2/3 twice";
    EXPECT_EQ(moved(Collective::reduce, 3), 2400);
    EXPECT_EQ(moved(Collective::broadcast, 3), 2400);
    EXPECT_EQ(moved(Collective::all_gather, 3), 2400) << "three ranks need two chunks each";
    EXPECT_EQ(moved(Collective::gather, 3), 800) << "the root needs two chunks";
    EXPECT_EQ(moved(Collective::scatter, 3), 800);
    EXPECT_EQ(moved(Collective::reduce_scatter, 3), 2400);
    EXPECT_EQ(moved(Collective::all_to_all, 3), 2400);
    EXPECT_EQ(moved(Collective::scan, 3), 2400);
    EXPECT_EQ(moved(Collective::exclusive_scan, 3), 2400);
    EXPECT_EQ(moved(Collective::barrier, 3), 0);
    EXPECT_EQ(moved(Collective::all_reduce, 1), 0);
}

TEST(BenchCeiling, memory_bytes_count_every_input_and_output_once) {
    EXPECT_EQ(memory(Collective::all_reduce, 3), 7200) << "three inputs and three outputs";
    EXPECT_EQ(memory(Collective::reduce, 3), 4800) << "three inputs and one output";
    EXPECT_EQ(memory(Collective::broadcast, 3), 3600) << "one input and two outputs";
    EXPECT_EQ(memory(Collective::all_gather, 3), 4800) << "three chunks and three outputs";
    EXPECT_EQ(memory(Collective::gather, 3), 2400);
    EXPECT_EQ(memory(Collective::scatter, 3), 2400);
    EXPECT_EQ(memory(Collective::reduce_scatter, 3), 4800) << "three inputs and three chunks";
    EXPECT_EQ(memory(Collective::all_to_all, 3), 7200);
    EXPECT_EQ(memory(Collective::scan, 3), 7200);
    EXPECT_EQ(memory(Collective::barrier, 3), 0);
}

TEST(BenchCeiling, messages_count_per_iteration_and_per_reported_time) {
    const Subject latency{.kind = Subject::Kind::latency};
    const Subject bandwidth{.kind = Subject::Kind::bandwidth};
    const Subject exchange{.kind = Subject::Kind::exchange};
    EXPECT_EQ(moved_bytes(latency, 4, kBytes), 2400) << "there and back";
    EXPECT_EQ(moved_bytes(bandwidth, 4, kBytes), 64 * 1200);
    EXPECT_EQ(moved_bytes(exchange, 4, kBytes), 2400);
    EXPECT_EQ(memory_bytes(latency, 4, kBytes), 2400) << "one message is read and written";
    EXPECT_EQ(memory_bytes(bandwidth, 4, kBytes), 2400);
    EXPECT_EQ(memory_bytes(exchange, 4, kBytes), 4800);
}

TEST(BenchCeiling, part_of_the_ceiling_compares_times) {
    Measured measured{.extent = {.bytes = kBytes, .count = 300}};
    measured.p50 = 1e-6;
    // 7200 bytes at 7.2e9 bytes per second take 1 us.
    const Subject subject = collective(Collective::all_reduce);
    EXPECT_DOUBLE_EQ(part_of_ceiling(subject, 3, measured, 7.2e9), 1.0);
    EXPECT_DOUBLE_EQ(part_of_ceiling(subject, 3, measured, 14.4e9), 0.5);
    EXPECT_EQ(part_of_ceiling(subject, 3, measured, 0), 0) << "the rate was not measured";
}

}  // namespace
}  // namespace nexar::bench

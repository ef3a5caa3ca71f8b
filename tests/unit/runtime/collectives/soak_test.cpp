// Tests that take minutes or a lot of memory.

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <nexar/nexar.hpp>
#include <span>
#include <string>

#include "ranks.hpp"

namespace nexar::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kGiB = std::size_t{1} << 30U;

std::size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::size_t all_pages = 0;
    std::size_t resident_pages = 0;
    file >> all_pages >> resident_pages;
    return resident_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// The memory that the system can provide without swapping.
std::size_t available_bytes() {
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::size_t kib = 0;
    std::string unit;
    while (file >> name >> kib) {
        if (name == "MemAvailable:") return kib * 1024;
        std::getline(file, unit);
    }
    return 0;
}

void run_small_operations(std::vector<Communicator>& ranks, std::size_t times) {
    std::array<std::int64_t, 2> values{};
    for (std::size_t i = 0; i < times; ++i) {
        const auto base = static_cast<std::int64_t>(i);
        values = {base, base * 3};
        auto sum0 = ranks[0].all_reduce(std::span(&values[0], 1), sum);
        auto sum1 = ranks[1].all_reduce(std::span(&values[1], 1), sum);
        auto barrier0 = ranks[0].barrier();
        auto barrier1 = ranks[1].barrier();
        for (Work<>* work : {&sum0, &sum1, &barrier0, &barrier1}) {
            ASSERT_TRUE(outcome(*work).has_value());
        }
        ASSERT_EQ(values[0], base * 4);
        ASSERT_EQ(values[1], base * 4);
    }
}

TEST(CollectivesSoak, a_million_barriers_and_small_all_reduces_leak_no_memory) {
    auto ranks = fresh_ranks(2);
    run_small_operations(ranks, 50'000);
    ASSERT_FALSE(HasFailure());
    ::malloc_trim(0);
    const std::size_t before = resident_bytes();
    run_small_operations(ranks, 500'000);
    const std::size_t after = resident_bytes();
    if (!kSanitized) {
        EXPECT_LE(after, before + kMiB);
    }
}

/// Byte `i` of a rank's input.
std::uint8_t byte_at(std::size_t rank, std::size_t i) {
    return static_cast<std::uint8_t>(random_bits(500, rank, i / 8) >> (i % 8 * 8));
}

void fill(std::size_t rank, std::span<std::uint8_t> memory) {
    for (std::size_t i = 0; i < memory.size(); i += 8) {
        const std::uint64_t word = random_bits(500, rank, i / 8);
        std::memcpy(&memory[i], &word, 8);
    }
}

TEST(CollectivesSoak, five_gibibytes_are_all_reduced) {
    constexpr std::size_t kBytes = 5 * kGiB;
    if (available_bytes() < 14 * kGiB) GTEST_SKIP() << "needs 14 GiB of memory";
    auto ranks = fresh_ranks(2);
    std::array<std::unique_ptr<std::uint8_t[]>, 2> memory;
    std::vector<std::span<std::uint8_t>> values;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        memory[rank] = std::make_unique_for_overwrite<std::uint8_t[]>(kBytes);
        values.emplace_back(memory[rank].get(), kBytes);
        fill(rank, values[rank]);
    }
    auto works = start_all(ranks, [&](Communicator& c, std::size_t rank) {
        return c.all_reduce(values[rank], max, {.timeout = std::chrono::minutes(10)});
    });
    for (Work<>& work : works) ASSERT_TRUE(work.wait_for(std::chrono::minutes(11)));
    expect_success(works);
    const auto check = [&](std::size_t at) {
        const std::uint8_t want = std::max(byte_at(0, at), byte_at(1, at));
        for (std::size_t rank = 0; rank < 2; ++rank) {
            ASSERT_EQ(values[rank][at], want) << "rank " << rank << ", byte " << at;
        }
    };
    for (const std::size_t edge : {std::size_t{0}, 2 * kGiB, kBytes / 2, 4 * kGiB, kBytes}) {
        const std::size_t from = edge < 5000 ? 0 : edge - 5000;
        for (std::size_t at = from; at < std::min(edge + 5000, kBytes); ++at) check(at);
    }
    for (std::size_t i = 0; i < 5'000'000; ++i) check(random_bits(501, 0, i) % kBytes);
}

}  // namespace
}  // namespace nexar::testing

/// Counts heap allocations: repeated small collectives in shared memory must cause none.

#include <gtest/gtest.h>

#include <cstddef>

#include "support/allocations.hpp"
#include "unit/engine/memory_engines.hpp"

namespace nexar::testing {
namespace {

class Repeated : public ::testing::TestWithParam<schedule::Collective> {};

TEST_P(Repeated, collectives_in_memory_allocate_nothing) {
    MemoryEngines ranks(2, std::size_t{1} << 20U);
    for (const std::size_t count : {std::size_t{1}, std::size_t{2000}, std::size_t{50'000}}) {
        if (GetParam() == schedule::Collective::barrier && count > 1) continue;
        std::vector<std::uint64_t> one(GetParam() == schedule::Collective::barrier ? 0 : count);
        std::vector<std::uint64_t> two = one;
        const auto run = [&] {
            ranks.start(0, GetParam(), one);
            ranks.start(1, GetParam(), two);
            for (bool a = false, b = false; !a || !b;) {
                a = a || ranks.poll(0);
                b = b || ranks.poll(1);
            }
        };
        for (int i = 0; i < 10; ++i) run();
        const Allocations allocations;
        for (int i = 0; i < 300; ++i) run();
        EXPECT_EQ(allocations.count(), 0U) << count;
        EXPECT_FALSE(ranks.failed(0) || ranks.failed(1));
    }
}

INSTANTIATE_TEST_SUITE_P(Small, Repeated,
                         ::testing::Values(schedule::Collective::barrier,
                                           schedule::Collective::all_reduce,
                                           schedule::Collective::broadcast));

}  // namespace
}  // namespace nexar::testing

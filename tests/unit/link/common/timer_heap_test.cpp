#include "link/common/timer_heap.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "base/random.hpp"
#include "support/seed.hpp"

namespace nexar::link {
namespace {

struct Thing {
    std::size_t heap_place = TimerHeap<Thing>::kNowhere;
};

TimePoint at(std::uint64_t nanoseconds) {
    return TimePoint(Duration(static_cast<Duration::rep>(nanoseconds)));
}

TEST(TimerHeap, matches_a_model_under_random_operations) {
    Random random(test_seed(3));
    for (int round = 0; round < 20; ++round) {
        std::vector<Thing> things(1 + random.below(200));
        std::map<std::size_t, TimePoint> model;
        TimerHeap<Thing> heap;
        for (int i = 0; i < 5000; ++i) {
            const std::size_t which = random.below(things.size());
            if (random.chance(0.2)) {
                heap.remove(things[which]);
                model.erase(which);
            } else if (random.chance(0.05)) {
                heap.set(things[which], TimePoint::max());
                model.erase(which);
            } else {
                const TimePoint due = at(random.below(random.chance(0.5) ? 10 : 1'000'000));
                heap.set(things[which], due);
                model[which] = due;
            }
            ASSERT_EQ(heap.empty(), model.empty());
            if (model.empty()) continue;
            TimePoint first = TimePoint::max();
            for (const auto& [index, due] : model) first = std::min(first, due);
            ASSERT_EQ(heap.due(), first);
            const auto index = static_cast<std::size_t>(&heap.first() - things.data());
            ASSERT_EQ(model.at(index), first);
        }
        TimePoint last = at(0);
        for (std::size_t left = model.size(); left > 0; --left) {
            ASSERT_GE(heap.due(), last);
            last = heap.due();
            heap.remove(heap.first());
        }
        EXPECT_TRUE(heap.empty());
        for (const Thing& thing : things) EXPECT_EQ(thing.heap_place, TimerHeap<Thing>::kNowhere);
    }
}

TEST(TimerHeap, removing_an_absent_object_does_nothing) {
    TimerHeap<Thing> heap;
    Thing in;
    Thing out;
    heap.set(in, at(5));
    heap.remove(out);
    EXPECT_EQ(&heap.first(), &in);
}

}  // namespace
}  // namespace nexar::link

#include "runtime/completion.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "unit/runtime/function_continuation.hpp"

namespace nexar::runtime {
namespace {

std::vector<Continuation*> drained(ContinuationQueue& queue) {
    std::vector<Continuation*> all;
    while (Continuation* const next = queue.pop()) all.push_back(next);
    return all;
}

TEST(continuation_queue, returns_continuations_in_order) {
    ContinuationQueue queue;
    FunctionContinuation a([] {});
    FunctionContinuation b([] {});
    FunctionContinuation c([] {});
    EXPECT_TRUE(queue.empty());
    queue.push(a);
    queue.push(b);
    EXPECT_EQ(queue.pop(), &a);
    queue.push(c);
    queue.push(a);
    EXPECT_FALSE(queue.empty());
    EXPECT_EQ(drained(queue), (std::vector<Continuation*>{&b, &c, &a}));
    EXPECT_TRUE(queue.empty());
}

TEST(continuation_queue, removes_any_element_and_keeps_the_order_of_the_rest) {
    FunctionContinuation a([] {});
    FunctionContinuation b([] {});
    FunctionContinuation c([] {});
    const std::vector<Continuation*> all{&a, &b, &c};
    for (Continuation* const gone : all) {
        ContinuationQueue queue;
        for (Continuation* const one : all) queue.push(*one);
        EXPECT_TRUE(queue.remove(*gone));
        EXPECT_FALSE(queue.remove(*gone));
        queue.push(*gone);
        auto expected = all;
        std::erase(expected, gone);
        expected.push_back(gone);
        EXPECT_EQ(drained(queue), expected);
    }
}

TEST(completion, is_not_done_when_new_or_rearmed) {
    Completion completion;
    EXPECT_FALSE(completion.done());
    completion.rearm();
    EXPECT_FALSE(completion.done());
}

TEST(completion, occupies_two_words) {
    EXPECT_EQ(sizeof(Completion), 2 * sizeof(void*));
}

TEST(completion_death, refuses_a_second_continuation) {
    Completion completion;
    FunctionContinuation a([] {});
    FunctionContinuation b([] {});
    EXPECT_TRUE(completion.then(a));
    EXPECT_DEATH(static_cast<void>(completion.then(b)), "one continuation at a time");
    EXPECT_DEATH(completion.rearm(), "cannot be started again");
}

}  // namespace
}  // namespace nexar::runtime

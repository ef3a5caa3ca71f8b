// Node::failures(): the list, the callback and the Work.

#include <gmock/gmock.h>

#include <atomic>
#include <coroutine>
#include <mutex>
#include <thread>
#include <vector>

#include "process/elastic/elastic_cluster.hpp"

namespace nexar::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Lists = std::vector<std::vector<int>>;

/// A coroutine that starts at once and destroys itself at its end.
struct Following {
    // NOLINTBEGIN(readability-identifier-naming): names that the language requires
    struct promise_type {
        Following get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
    // NOLINTEND(readability-identifier-naming)
};

/// Keeps each list that it gets until the node closes.
Following follow(Failures failures, Lists& lists, std::atomic<Errc>& end) {
    try {
        for (;;) {
            const std::size_t known = lists.empty() ? 0 : lists.back().size();
            std::vector<int> failed = co_await failures.longer_than(known);
            lists.push_back(std::move(failed));
        }
    } catch (const Error& error) {
        end = error.code();
    }
}

class FailureList : public ElasticCluster {
protected:
    /// Kills a process and waits until all nodes here know that it has failed.
    void kill_and_await(int rank, std::size_t failed) {
        kill(rank);
        for (const int survivor : here()) {
            EXPECT_EQ(await_failures(node(survivor), failed - 1).size(), failed);
        }
    }
};

TEST_F(FailureList, is_the_same_on_all_survivors_and_in_the_order_of_the_failures) {
    form({.world = 5, .processes = {1, 3}});
    EXPECT_THAT(node(0).failures().list(), IsEmpty());
    kill_and_await(3, 1);
    for (const int rank : here()) EXPECT_THAT(node(rank).failures().list(), ElementsAre(3));
    kill_and_await(1, 2);
    for (const int rank : here()) {
        EXPECT_THAT(node(rank).failures().list(), ElementsAre(3, 1));
        EXPECT_THAT(node(rank).members(), ElementsAre(0, 2, 4));
    }
}

TEST_F(FailureList, does_not_contain_ranks_that_leave) {
    form({.world = 4, .processes = {1, 3}});
    process(1).close_input();
    EXPECT_EQ(process(1).wait(), 0) << process(1).errors();
    await_members({0, 2, 3});
    kill_and_await(3, 1);
    EXPECT_THAT(node(0).failures().list(), ElementsAre(3));
}

TEST_F(FailureList, longer_than_needs_no_other_failure_if_the_list_is_longer) {
    form({.world = 4, .processes = {1}});
    kill_and_await(1, 1);
    Work<std::vector<int>> known = node(0).failures().longer_than(0);
    // Another thread may have to start it, so it need not be done yet.
    EXPECT_TRUE(known.wait_for(kElasticPatience));
    EXPECT_THAT(known.wait(), ElementsAre(1));
    Work<std::vector<int>> later = node(0).failures().longer_than(1);
    EXPECT_FALSE(later.done());
    later.cancel();
}

TEST_F(FailureList, callback_is_called_once_for_each_change_until_it_is_replaced) {
    form({.world = 5, .processes = {1, 3}});
    std::mutex mutex;
    Lists first;
    Lists second;
    const auto keep_in = [&mutex](Lists& lists) {
        return [&mutex, &lists](const std::vector<int>& failed) {
            const std::scoped_lock lock(mutex);
            lists.push_back(failed);
        };
    };
    const auto await_one = [&](const Lists& lists) {
        await("a call of the callback", [&] {
            const std::scoped_lock lock(mutex);
            return !lists.empty();
        });
    };
    node(0).failures().on_change(keep_in(first));
    kill_and_await(3, 1);
    await_one(first);
    node(0).failures().on_change(keep_in(second));
    kill_and_await(1, 2);
    await_one(second);
    close(0);  // no callback runs any more
    EXPECT_THAT(first, ElementsAre(ElementsAre(3)));
    EXPECT_THAT(second, ElementsAre(ElementsAre(3, 1)));
}

TEST_F(FailureList, removed_callback_is_not_called) {
    form({.world = 4, .processes = {1}});
    std::atomic<int> called = 0;
    node(0).failures().on_change([&](const std::vector<int>&) { ++called; });
    node(0).failures().on_change({});
    kill_and_await(1, 1);
    close(0);
    EXPECT_EQ(called, 0);
}

TEST_F(FailureList, callback_may_set_another_callback) {
    form({.world = 5, .processes = {1, 3}});
    std::atomic<int> first = 0;
    std::atomic<int> second = 0;
    const Failures failures = node(0).failures();
    failures.on_change([&, failures](const std::vector<int>&) {
        ++first;
        failures.on_change([&](const std::vector<int>&) { ++second; });
    });
    kill_and_await(1, 1);
    await("the first callback", [&] { return first != 0; });
    kill_and_await(3, 2);
    await("the second callback", [&] { return second != 0; });
    close(0);
    EXPECT_EQ(first, 1);
    EXPECT_EQ(second, 1);
}

TEST_F(FailureList, coroutine_gets_every_change_until_the_node_closes) {
    form({.world = 5, .processes = {1, 3}});
    Lists lists;
    std::atomic<Errc> end{};
    follow(node(0).failures(), lists, end);
    kill_and_await(1, 1);
    kill_and_await(3, 2);
    close(0);
    EXPECT_EQ(end.load(), Errc::closed);
    ASSERT_FALSE(lists.empty());
    EXPECT_THAT(lists.back(), ElementsAre(1, 3));
    EXPECT_THAT(lists, ::testing::SizeIs(::testing::Le(2U)));
}

}  // namespace
}  // namespace nexar::testing

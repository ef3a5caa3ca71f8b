#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "runtime/progress.hpp"
#include "support/seed.hpp"
#include "unit/runtime/fake_node.hpp"

namespace nexar::runtime {
namespace {

constexpr std::size_t kPosters = 4;
constexpr std::uint32_t kPosts = 3000;

// Records the posts that run under the lock: each poster's numbers must arrive in order, one at a
// time.
struct Ledger {
    std::array<std::uint32_t, kPosters> next{};  // guarded by the loop's lock
    std::atomic<int> inside{0};
    std::atomic<std::uint32_t> disordered{0};
    std::atomic<std::uint32_t> overlapping{0};
    std::atomic<std::uint32_t> ran{0};
};

class Entry final : public Submission {
public:
    void aim(Ledger& ledger, std::size_t poster, std::uint32_t number) {
        ledger_ = &ledger;
        poster_ = poster;
        number_ = number;
    }
    void run_under_lock() noexcept override {
        if (ledger_->inside.fetch_add(1) != 0) ledger_->overlapping.fetch_add(1);
        if (ledger_->next[poster_] != number_) ledger_->disordered.fetch_add(1);
        ledger_->next[poster_] = number_ + 1;
        ledger_->inside.fetch_sub(1);
        ledger_->ran.fetch_add(1, std::memory_order_release);
    }

private:
    Ledger* ledger_ = nullptr;
    std::size_t poster_ = 0;
    std::uint32_t number_ = 0;
};

void post_all(Progress& progress, Ledger& ledger, std::size_t poster, std::vector<Entry>& entries,
              Random random) {
    for (std::uint32_t i = 0; i < kPosts; ++i) {
        entries[i].aim(ledger, poster, i);
        progress.post(entries[i]);
        if (!random.chance(0.01)) continue;
        const Progress::Guard guard(progress);
        EXPECT_EQ(ledger.next[poster], i + 1) << "a post runs before a guard that is taken later";
    }
}

class ProgressPost : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ProgressPost, runs_each_post_once_and_in_thread_order_while_another_thread_drives) {
    const auto progress = make_progress({.posted_capacity = GetParam()});
    FakeNode node(*progress);
    Random random(test_seed(32));
    Ledger ledger;
    Completion end;
    node.expect(1, end);
    std::array<std::vector<Entry>, kPosters> entries;
    for (auto& list : entries) list = std::vector<Entry>(kPosts);
    {
        const std::jthread driver([&] { EXPECT_TRUE(progress->wait(end, soon())); });
        {
            std::vector<std::jthread> posters;
            for (std::size_t p = 0; p < kPosters; ++p) {
                posters.emplace_back([&, p, fork = random.fork()] {
                    post_all(*progress, ledger, p, entries[p], fork);
                });
            }
        }
        // The driver must run the posts that are still queued, although nothing more is posted.
        const TimePoint patience = soon();
        while (ledger.ran.load(std::memory_order_acquire) < kPosters * kPosts) {
            ASSERT_LT(SteadyClock{}.now(), patience) << "a post was lost";
            std::this_thread::yield();
        }
        node.carrier().arrive(1);
    }
    EXPECT_EQ(ledger.ran.load(), kPosters * kPosts);
    EXPECT_EQ(ledger.disordered.load(), 0U);
    EXPECT_EQ(ledger.overlapping.load(), 0U);
}

INSTANTIATE_TEST_SUITE_P(capacities, ProgressPost, ::testing::Values(1, 3, 1024));

// Always reports activity, so that its driver never sleeps and hardly ever releases the lock.
class Busy final : public Driven {
public:
    std::span<port::Carrier* const> carriers() const noexcept override { return {}; }
    bool turn(TimePoint /*now*/) noexcept override { return true; }
    std::optional<TimePoint> next_deadline() const noexcept override { return std::nullopt; }
};

TEST(progress_lock, a_driver_that_never_sleeps_lets_other_threads_start_operations) {
    const auto progress = make_progress();
    Busy busy;
    progress->add(busy).value();
    Completion end;
    {
        const std::jthread driver([&] { EXPECT_TRUE(progress->wait(end, soon())); });
        int started = 0;
        for (; started < 500; ++started) const Progress::Guard guard(*progress);
        EXPECT_EQ(started, 500);
        const Progress::Guard guard(*progress);
        progress->complete(end);
    }
    progress->remove(busy);
}

}  // namespace
}  // namespace nexar::runtime

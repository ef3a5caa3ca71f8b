// Drivers that fall asleep while something arrives that wakes nobody.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <atomic>
#include <ctime>
#include <memory>
#include <ostream>
#include <thread>

#include "base/random.hpp"
#include "runtime/progress.hpp"
#include "support/seed.hpp"
#include "unit/runtime/fake_node.hpp"
#include "unit/runtime/quiet_node.hpp"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;

// Far more than a turn takes on any machine. A driver that misses an arrival sleeps until soon().
constexpr Duration kLost = 20s;

bool readable(int descriptor) {
    pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) == 1;
}

void busy_for(Duration time) {
    const TimePoint end = SteadyClock{}.now() + time;
    while (SteadyClock{}.now() < end) {
    }
}

/// A thread that, for each request, sends one arrival after a random time.
class Peer {
public:
    Peer(QuietNode& node, Random random)
        : thread_([this, &node, random]() mutable { run(node, random); }) {}
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer() { requested_.store(kEnd, std::memory_order_release); }

    void request(std::uint64_t arrivals) { requested_.store(arrivals, std::memory_order_release); }

private:
    static constexpr std::uint64_t kEnd = ~std::uint64_t{0};

    void run(QuietNode& node, Random& random) {
        for (std::uint64_t sent = 0;;) {
            const std::uint64_t requested = requested_.load(std::memory_order_acquire);
            if (requested == kEnd) return;
            if (requested == sent) {
                std::this_thread::yield();
                continue;
            }
            // Around the time at which a driver with a small budget falls asleep.
            busy_for(Duration(random.below(20'000)));
            node.carrier().arrive();
            ++sent;
        }
    }

    std::atomic<std::uint64_t> requested_{0};
    std::jthread thread_;
};

struct Policy {
    const char* name;
    Progress::Options options;
};
// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest expects
void PrintTo(const Policy& policy, std::ostream* out) {
    *out << policy.name;
}

class ProgressSleep : public ::testing::TestWithParam<Policy> {
protected:
    static constexpr std::uint64_t kRounds = 3000;

    std::unique_ptr<Progress> with(Progress::Drive drive) const {
        Progress::Options options = GetParam().options;
        options.drive = drive;
        return make_progress(options);
    }

    Random random_{test_seed(47)};
};

TEST_P(ProgressSleep, no_arrival_is_lost_while_a_thread_waits) {
    for (const auto drive : {Progress::Drive::background, Progress::Drive::user_loop}) {
        const auto progress = with(drive);
        QuietNode node(*progress);
        Peer peer(node, random_.fork());
        for (std::uint64_t i = 1; i <= kRounds; ++i) {
            Completion completion;
            node.expect(i, completion);
            peer.request(i);
            const TimePoint begin = SteadyClock{}.now();
            ASSERT_TRUE(progress->wait(completion, soon()));
            ASSERT_LT(SteadyClock{}.now() - begin, kLost) << "round " << i;
        }
    }
}

TEST_P(ProgressSleep, no_arrival_is_lost_while_the_background_thread_drives) {
    const auto progress = with(Progress::Drive::background);
    QuietNode node(*progress);
    Peer peer(node, random_.fork());
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
        Completion completion;
        node.expect(i, completion);
        peer.request(i);
        const TimePoint begin = SteadyClock{}.now();
        // Sometimes a caller drives, and then computes.
        if (i % 16 == 0) static_cast<void>(progress->wait(completion, begin + 3us));
        while (!completion.done()) {
            ASSERT_LT(SteadyClock{}.now() - begin, kLost) << "round " << i;
            std::this_thread::yield();
        }
    }
}

TEST_P(ProgressSleep, no_arrival_is_lost_while_a_user_loop_drives_and_other_threads_wait) {
    const auto progress = with(Progress::Drive::user_loop);
    QuietNode node(*progress);
    std::atomic<bool> ending{false};
    std::jthread loop([&] {
        while (!ending) {
            timespec left{.tv_sec = 60, .tv_nsec = 0};
            if (const auto deadline = progress->next_deadline()) left = {};
            pollfd entry{.fd = progress->descriptor(), .events = POLLIN, .revents = 0};
            ::ppoll(&entry, 1, &left, nullptr);
            progress->poll();
        }
    });
    Peer peer(node, random_.fork());
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
        Completion completion;
        node.expect(i, completion);
        peer.request(i);
        const TimePoint begin = SteadyClock{}.now();
        // Every other arrival is for the loop, which another thread often leaves at that moment.
        if (i % 2 == 0) {
            static_cast<void>(progress->wait(completion, begin + Duration(random_.below(20'000))));
        }
        while (!completion.done()) {
            ASSERT_LT(SteadyClock{}.now() - begin, kLost) << "round " << i;
            std::this_thread::yield();
        }
    }
    ending = true;
    node.carrier().arrive();
}

INSTANTIATE_TEST_SUITE_P(
    policies, ProgressSleep,
    ::testing::Values(Policy{.name = "automatic", .options = {}},
                      Policy{.name = "short_spin", .options = {.spin = 3us, .look = 50us}},
                      Policy{.name = "spin", .options = {.waiting = Waiting::spin}},
                      Policy{.name = "sleep", .options = {.waiting = Waiting::sleep}}),
    [](const auto& tested) { return tested.param.name; });

TEST(progress_sleep, a_driver_takes_another_turn_if_something_arrived_as_it_fell_asleep) {
    for (const auto drive : {Progress::Drive::background, Progress::Drive::user_loop}) {
        const auto progress = make_progress({.drive = drive, .spin = 0us});
        QuietNode node(*progress);
        Completion completion;
        node.expect(1, completion);
        node.arrive_at_the_next_sleep();
        const TimePoint begin = SteadyClock{}.now();
        EXPECT_TRUE(progress->wait(completion, soon()));
        EXPECT_LT(SteadyClock{}.now() - begin, kLost);
    }
}

TEST(progress_sleep, the_user_loop_gets_a_deadline_that_has_passed_if_something_arrived) {
    const auto progress = make_user_loop();
    QuietNode node(*progress);
    EXPECT_TRUE(node.carrier().asleep()) << "the loop has not polled yet";
    EXPECT_EQ(progress->next_deadline(), std::nullopt);
    progress->poll();
    EXPECT_FALSE(node.carrier().asleep());
    node.carrier().arrive();
    EXPECT_EQ(node.carrier().signals(), 0U);
    const auto deadline = progress->next_deadline();
    ASSERT_TRUE(deadline);
    EXPECT_LE(*deadline, SteadyClock{}.now());
    progress->poll();
    EXPECT_EQ(progress->next_deadline(), std::nullopt);
    EXPECT_TRUE(node.carrier().asleep());
    EXPECT_FALSE(readable(progress->descriptor()));
    node.carrier().arrive();
    EXPECT_EQ(node.carrier().signals(), 1U);
    EXPECT_TRUE(readable(progress->descriptor()));
    progress->poll();
    EXPECT_FALSE(readable(progress->descriptor()));
}

TEST(progress_sleep, the_user_loop_is_summoned_for_what_arrived_when_another_driver_ended) {
    const auto progress = make_user_loop();
    QuietNode node(*progress);
    EXPECT_EQ(progress->next_deadline(), std::nullopt);
    Completion completion;
    node.expect(1, completion);
    node.carrier().arrive();
    EXPECT_TRUE(progress->wait(completion, soon()));
    EXPECT_TRUE(node.carrier().asleep()) << "the loop still sleeps";
    EXPECT_FALSE(readable(progress->descriptor()));
    Completion second;
    node.expect(2, second);
    node.carrier().arrive();
    node.arrive_at_the_next_sleep();
    EXPECT_TRUE(progress->wait(second, soon()));
    EXPECT_TRUE(readable(progress->descriptor()));
}

TEST(progress_sleep, a_node_added_while_the_driver_sleeps_falls_asleep_too) {
    const auto progress = make_progress({.spin = 0us});
    QuietNode first(*progress);
    const TimePoint begin = SteadyClock{}.now();
    while (!first.carrier().asleep()) ASSERT_LT(SteadyClock{}.now() - begin, kLost);
    QuietNode second(*progress);
    Completion completion;
    second.expect(1, completion);
    second.carrier().arrive();
    while (!completion.done()) ASSERT_LT(SteadyClock{}.now() - begin, kLost);
}

TEST(progress_sleep, nobody_pays_for_a_wakeup_while_the_driver_spins) {
    const auto progress =
        make_progress({.drive = Progress::Drive::user_loop, .waiting = Waiting::spin});
    QuietNode node(*progress);
    constexpr std::uint64_t kArrivals = 100;
    Completion completion;
    node.expect(kArrivals, completion);
    std::jthread peer([&] {
        while (node.turns() == 0) std::this_thread::yield();
        for (std::uint64_t i = 0; i < kArrivals; ++i) {
            const std::uint64_t turns = node.turns();
            node.carrier().arrive();
            while (i + 1 < kArrivals && node.turns() == turns) std::this_thread::yield();
        }
    });
    EXPECT_TRUE(progress->wait(completion, soon()));
    peer.join();
    EXPECT_EQ(node.carrier().signals(), 0U);
}

Duration cpu_time() {
    rusage usage{};
    EXPECT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
    const auto duration = [](const timeval& time) {
        return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
    };
    return duration(usage.ru_utime) + duration(usage.ru_stime);
}

TEST(progress_sleep, a_thread_that_waits_for_long_uses_less_than_5_percent_of_a_processor) {
    for (const auto waiting : {Waiting::automatic, Waiting::sleep}) {
        const auto progress = make_progress({.waiting = waiting});
        FakeNode node(*progress);
        Completion never;
        const Duration before = cpu_time();
        EXPECT_FALSE(progress->wait(never, SteadyClock{}.now() + 1s));
        EXPECT_LT(cpu_time() - before, 50ms);
    }
}

TEST(progress_sleep, a_thread_that_must_spin_does_not_sleep) {
    const auto progress = make_progress({.waiting = Waiting::spin, .spin = 0us});
    QuietNode node(*progress);
    Completion completion;
    node.expect(1, completion);
    std::jthread waiting([&] { EXPECT_TRUE(progress->wait(completion, soon())); });
    // A sleeping thread takes some turns, a spinning one tens of thousands.
    const TimePoint begin = SteadyClock{}.now();
    while (node.turns() <= 500 && SteadyClock{}.now() - begin < kLost) std::this_thread::yield();
    EXPECT_GT(node.turns(), 500U);
    node.carrier().arrive();
}

}  // namespace
}  // namespace nexar::runtime

// How soon a rank notices that a rank on the same host was killed, whatever it does at that moment.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <sstream>
#include <thread>

#include "process/p2p/deadline_table.hpp"
#include "process/shm/host_world.hpp"
#include "support/sanitized.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::microseconds;

enum class Activity : std::uint8_t {
    collectives,  // one small collective after the other with the killed rank
    asleep,       // waits for a message of the killed rank
    computing,    // calls nothing of nexar, so only the background thread drives
};

std::int64_t now_us() {
    return std::chrono::duration_cast<Microseconds>(Clock::now().time_since_epoch()).count();
}

void run_collectives(Communicator& world) {
    for (;;) {
        std::uint64_t value = 1;
        auto work = world.all_reduce(std::span(&value, 1), sum);
        finish(work, soon());
    }
}

/// Returns when an operation with the other rank has failed, in microseconds.
std::int64_t await_failure(Communicator world, Activity activity, const Channel& parent) {
    std::uint64_t value = 0;
    Work<Status> message;
    if (activity != Activity::collectives) message = world.recv(std::span(&value, 1), 1, 5);
    if (activity == Activity::computing) {
        std::atomic<std::int64_t> failed_us = 0;
        std::move(message).then(
            [&](const Result<Status>& ended) { failed_us = ended ? -1 : now_us(); });
        parent.say("runs");
        const auto until = soon();
        for (std::uint64_t i = 1; failed_us == 0; ++i) {
            value = value * 6364136223846793005U + i;
            if (i % 1'000'000 == 0 && Clock::now() > until) return -1;
        }
        return failed_us;
    }
    parent.say("runs");
    try {
        if (activity == Activity::collectives) run_collectives(world);
        finish(message, soon());
    } catch (const Error&) {
        return now_us();
    }
    return -1;
}

void take_part(Member& member, Activity activity, const Channel& parent) {
    const LocalDelay delay;
    Communicator world = member.world();
    if (world.rank() == 1) {
        parent.say("runs");
        if (activity == Activity::collectives) run_collectives(world);
        await(parent, "never", kWithin);
    }
    const auto before = delay.so_far();
    const std::int64_t failed_us = await_failure(world, activity, parent);
    parent.say(
        fmt::format("{} {}", failed_us,
                    std::chrono::duration_cast<Microseconds>(delay.so_far() - before).count()));
    leave(member, parent);
}

void expect_noticed(Activity activity, std::chrono::milliseconds within) {
    constexpr int kKills = 15;
    std::mt19937_64 random(test_seed(31));
    std::vector<std::int64_t> took_us;
    std::vector<std::int64_t> since_end_us;
    for (int i = 0; i < kKills; ++i) {
        HostWorld world(
            2, [&](Member& member, const Channel& parent) { take_part(member, activity, parent); });
        world.await_all("runs");
        // This sleep waits for nothing: the test is about the moment of the kill.
        std::this_thread::sleep_for(20ms + Microseconds(random() % 20'000));
        const std::int64_t killed_us = now_us();
        world.rank(1).kill();
        const std::int64_t ended_us = now_us();
        std::istringstream report(hear(world.rank(0).channel(), kWithin));
        std::int64_t failed_us = 0;
        std::int64_t delayed_us = 0;
        report >> failed_us >> delayed_us;
        ASSERT_GE(failed_us, killed_us) << "no operation failed";
        took_us.push_back(failed_us - killed_us);
        since_end_us.push_back(failed_us - ended_us);
        // On a busy machine the kernel ends the killed process late, and runs the survivor late.
        EXPECT_LE(Microseconds(failed_us - killed_us),
                  (kSanitized ? 5 : 1) * within + Microseconds(ended_us - killed_us + delayed_us));
        world.rank(0).channel().say("leave");
        EXPECT_EQ(world.rank(0).wait(), 0);
    }
    const auto line = [](const char* what, std::vector<std::int64_t>& us) {
        std::ranges::sort(us);
        fmt::print("{}: p50 {} us, p90 {} us, max {} us\n", what, us[us.size() / 2],
                   us[us.size() * 9 / 10], us.back());
    };
    line("from the kill to the error", took_us);
    line("from the end of the process to the error", since_end_us);
}

TEST(KillNotice, a_rank_in_a_collective_notices_within_20_ms) {
    expect_noticed(Activity::collectives, 20ms);
}

TEST(KillNotice, a_rank_that_sleeps_notices_within_10_ms) {
    expect_noticed(Activity::asleep, 10ms);
}

TEST(KillNotice, a_rank_that_computes_notices_within_10_ms) {
    expect_noticed(Activity::computing, 10ms);
}

}  // namespace
}  // namespace nexar::testing

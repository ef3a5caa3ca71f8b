// Every operation completes at its deadline, whatever happened to its peer, and never touches its
// memory afterwards.

#include <gtest/gtest.h>

#include <cstdio>
#include <tuple>

#include "process/p2p/deadline_table.hpp"
#include "support/link_driver.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr auto kMayBeLate = kSanitized ? 500ms : 100ms;
/// Long enough to start all rows of one size, which includes copies of many large payloads.
constexpr auto kTime = kSanitized ? 800ms : 250ms;
constexpr auto kTimeOfLargest = kSanitized ? 1500ms : 1000ms;
/// An operation that takes longer is considered hung.
constexpr auto kHangs = 8s;

class DeadlineTable : public ::testing::TestWithParam<std::tuple<LinkUnderTest, Fault>> {
protected:
    /// Runs every operation with payloads of one size.
    static void run(FaultyWorld& world, const LocalDelay& delay, std::size_t size) {
        const auto delayed_before = delay.so_far();
        const auto time = size == FaultyWorld::sizes().back() ? kTimeOfLargest : kTime;
        const SteadyPoint due = std::chrono::steady_clock::now() + time;
        auto rows = start_rows(world, size, due);
        const bool all = run_rows(rows, due, kHangs);
        const auto delayed = delay.so_far() - delayed_before;
        std::chrono::nanoseconds latest{};
        for (const auto& row : rows) {
            if (row->ended == SteadyPoint{}) {
                ADD_FAILURE() << row->name << " of " << size << " bytes did not complete";
                continue;
            }
            const auto late = row->ended - row->due;
            latest = std::max<std::chrono::nanoseconds>(latest, late);
            EXPECT_LE(late, kMayBeLate + delayed)
                << row->name << " of " << size << " bytes completed "
                << duration_cast<milliseconds>(late).count() << " ms after its deadline; "
                << "the machine delayed the threads of this process by "
                << duration_cast<milliseconds>(delayed).count() << " ms";
            expect_reason(*row);
        }
        std::printf(
            "%zu operations of %zu bytes: at most %lld ms late, %lld ms of it due to the machine\n",
            rows.size(), size, static_cast<long long>(duration_cast<milliseconds>(latest).count()),
            static_cast<long long>(duration_cast<milliseconds>(delayed).count()));
        // The destructors of the remaining operations would wait forever.
        if (!all) std::abort();
    }

    static void expect_reason(Row& row) {
        const auto error = row.outcome();
        if (!error) return;  // it completed before the fault began, or its data was copied
        const auto code = error->code();
        const bool expected = code == Errc::cancelled || code == Errc::timed_out ||
                              code == Errc::outcome_unknown || code == Errc::link_closed;
        EXPECT_TRUE(expected) << row.name << ": " << error->what();
    }
};

TEST_P(DeadlineTable, deadlines_hold_and_memory_is_not_touched_after_completion) {
    const auto& [link, fault] = GetParam();
    if (fault == Fault::cut_off && !link.route) GTEST_SKIP() << "nothing can cut this link";
    FaultyWorld world(link, fault);
    const LocalDelay delay;
    world.begin();
    for (const std::size_t size : FaultyWorld::sizes()) run(world, delay, size);
    // All memory is unmapped, so any late access would crash this process.
    world.end();
    if (fault == Fault::killed) {
        std::uint8_t none = 0;
        auto never = world.world().recv(std::span(&none, 1), any_source, 1);
        never.wait_for(100ms);
        never.cancel();
        EXPECT_FALSE(never.result());
    } else {
        EXPECT_TRUE(world.talks());
    }
}

INSTANTIATE_TEST_SUITE_P(Links, DeadlineTable,
                         ::testing::Combine(::testing::Values(quic_link(), shm_link()),
                                            ::testing::Values(Fault::stopped, Fault::killed,
                                                              Fault::cut_off)),
                         [](const auto& row) {
                             return std::string(std::get<0>(row.param).name) + "_" +
                                    std::string(name(std::get<1>(row.param)));
                         });

}  // namespace
}  // namespace nexar::testing

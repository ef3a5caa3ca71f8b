// Every operation ends at its deadline, whatever became of its peer, and leaves its memory alone.

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
/// Long enough to start all rows of one size.
constexpr auto kTime = kSanitized ? 800ms : 250ms;
/// What does not end by then hangs.
constexpr auto kHangs = 8s;

class DeadlineTable : public ::testing::TestWithParam<std::tuple<LinkUnderTest, Trouble>> {
protected:
    /// Every operation with payloads of one size.
    static void run(TroubledWorld& world, const LocalDelay& delay, std::size_t size) {
        const auto delayed_before = delay.so_far();
        const SteadyPoint due = std::chrono::steady_clock::now() + kTime;
        auto rows = start_rows(world, size, due);
        const bool all = run_rows(rows, due, kHangs);
        const auto delayed = delay.so_far() - delayed_before;
        std::chrono::nanoseconds latest{};
        for (const auto& row : rows) {
            if (row->ended == SteadyPoint{}) {
                ADD_FAILURE() << row->name << " of " << size << " bytes did not end";
                continue;
            }
            const auto late = row->ended - row->due;
            latest = std::max<std::chrono::nanoseconds>(latest, late);
            EXPECT_LE(late, kMayBeLate + delayed)
                << row->name << " of " << size << " bytes ended "
                << duration_cast<milliseconds>(late).count() << " ms after its deadline; "
                << "threads of this process ran " << duration_cast<milliseconds>(delayed).count()
                << " ms late";
            expect_reason(*row);
        }
        std::printf("%zu operations of %zu bytes: at most %lld ms late, %lld ms by the machine\n",
                    rows.size(), size,
                    static_cast<long long>(duration_cast<milliseconds>(latest).count()),
                    static_cast<long long>(duration_cast<milliseconds>(delayed).count()));
        // Whoever waits for the rest would wait for ever.
        if (!all) std::abort();
    }

    static void expect_reason(Row& row) {
        const auto error = row.outcome();
        if (!error) return;  // it had what it needs before the trouble began, or was copied
        const auto code = error->code();
        const bool told = code == Errc::cancelled || code == Errc::timed_out ||
                          code == Errc::outcome_unknown || code == Errc::link_closed;
        EXPECT_TRUE(told) << row.name << ": " << error->what();
    }
};

TEST_P(DeadlineTable, holds_and_memory_is_not_touched_afterwards) {
    const auto& [link, trouble] = GetParam();
    if (trouble == Trouble::cut_off && !link.route) GTEST_SKIP() << "nothing can cut this link";
    TroubledWorld world(link, trouble);
    const LocalDelay delay;
    world.begin();
    for (const std::size_t size : TroubledWorld::sizes()) run(world, delay, size);
    // The memory of all of it is unmapped. Whatever comes of it now would end this process.
    world.end();
    if (trouble == Trouble::killed) {
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
                         ::testing::Combine(::testing::Values(quic_link()),
                                            ::testing::Values(Trouble::stopped, Trouble::killed,
                                                              Trouble::cut_off)),
                         [](const auto& row) {
                             return std::string(std::get<0>(row.param).name) + "_" +
                                    std::string(name(std::get<1>(row.param)));
                         });

}  // namespace
}  // namespace nexar::testing

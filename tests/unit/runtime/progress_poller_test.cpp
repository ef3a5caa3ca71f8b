#include "runtime/progress_poller.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "unit/runtime/fake_node.hpp"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;

bool ready(const Poller& poller) {
    pollfd entry{.fd = poller.descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) == 1;
}

TEST(poller, returns_from_a_sleep_at_the_deadline) {
    const Poller poller = Poller::make().value();
    const TimePoint deadline = SteadyClock{}.now() + 2ms;
    while (SteadyClock{}.now() < deadline) poller.sleep_driving(deadline);
    poller.sleep_driving(TimePoint{});
    poller.sleep_outside(TimePoint{});
    poller.await_summons(0ms);
    EXPECT_FALSE(ready(poller));
}

TEST(poller, an_outside_sleep_consumes_summons_and_leaves_wakeups_to_the_driver) {
    const Poller poller = Poller::make().value();
    poller.wake();
    poller.summon();
    poller.sleep_outside(soon());
    EXPECT_TRUE(ready(poller));
    poller.sleep_driving(soon());  // returns at once: the wakeup is still pending
    EXPECT_FALSE(ready(poller));
}

TEST(poller, a_driving_sleep_leaves_summons_to_the_outside) {
    const Poller poller = Poller::make().value();
    poller.wake();
    poller.summon();
    poller.sleep_driving(soon());
    EXPECT_TRUE(ready(poller));
    poller.await_summons(std::nullopt);
    EXPECT_FALSE(ready(poller));
}

TEST(poller, skips_carriers_without_a_descriptor) {
    struct Bare final : port::Carrier {
        int descriptor() const noexcept override { return -1; }
        bool wants_write() const noexcept override { return true; }
        bool on_ready(TimePoint /*now*/) override { return false; }
        void flush(TimePoint /*now*/) override {}
        std::optional<TimePoint> next_deadline() const override { return {}; }
        std::optional<port::LinkEvent> poll_event() override { return {}; }
        void forget(port::LinkId /*link*/) override {}
    } bare;
    FakeCarrier real;
    port::Carrier* const both[] = {&bare, &real};
    Poller poller = Poller::make().value();
    ASSERT_TRUE(poller.watch(both));
    poller.follow_writers();
    EXPECT_FALSE(ready(poller));
    real.arrive(1);
    EXPECT_TRUE(ready(poller));
    poller.unwatch(both);
    EXPECT_FALSE(ready(poller));
}

TEST(poller, watches_all_of_several_carriers_or_none) {
    FakeCarrier good;
    port::Carrier* const twice[] = {&good, &good};
    Poller poller = Poller::make().value();
    EXPECT_FALSE(poller.watch(twice));
    good.arrive(1);
    EXPECT_FALSE(ready(poller));
    port::Carrier* const once[] = {&good};
    EXPECT_TRUE(poller.watch(once));
    EXPECT_TRUE(ready(poller));
}

TEST(poller, polls_for_writability_only_while_a_carrier_wants_to_write) {
    FakeCarrier carrier;
    port::Carrier* const all[] = {&carrier};
    Poller poller = Poller::make().value();
    ASSERT_TRUE(poller.watch(all));
    for (const bool wanted : {false, true, true, false}) {
        carrier.want_write(wanted);
        poller.follow_writers();
        EXPECT_EQ(ready(poller), wanted);
    }
}

TEST(poller, is_closed_on_exec) {
    const Poller poller = Poller::make().value();
    EXPECT_NE(::fcntl(poller.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

}  // namespace
}  // namespace nexar::runtime

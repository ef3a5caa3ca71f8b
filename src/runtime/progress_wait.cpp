// A thread inside wait() drives, or sleeps while another one drives.

#include <algorithm>
#include <iterator>

#include "base/assert.hpp"
#include "runtime/progress.hpp"

namespace nexar::runtime {

bool Progress::wait(Completion& completion, std::optional<TimePoint> deadline) {
    enter("wait for an operation");
    if (completion.done()) return true;
    Wait wait{.unlisted = &completion};
    wait_as(wait, deadline);
    if (wait.unlisted != nullptr) return completion.done();
    if (wait.waiter.told()) return true;
    if (completion.delist(wait.waiter)) return false;
    wait.waiter.await_told(1);
    return true;
}

std::optional<std::size_t> Progress::wait_any(std::span<Completion* const> completions,
                                              std::optional<TimePoint> deadline) {
    enter("wait for one of several operations");
    NEXAR_ASSERT(!completions.empty(), "wait_any() needs at least one operation");
    Wait wait;
    Waiter& waiter = wait.waiter;
    std::size_t enlisted = 0;
    while (enlisted < completions.size() && completions[enlisted]->enlist(waiter)) ++enlisted;
    if (enlisted == completions.size()) wait_as(wait, deadline);
    std::uint32_t finished = 0;
    for (Completion* const one : completions.first(enlisted)) {
        if (!one->delist(waiter)) ++finished;
    }
    waiter.await_told(finished);
    const auto first =
        std::ranges::find_if(completions, [](const Completion* one) { return one->done(); });
    if (first == completions.end()) return std::nullopt;
    return static_cast<std::size_t>(std::distance(completions.begin(), first));
}

bool Progress::stand_by(Completion& completion) {
    enter("stand by");
    Wait wait;
    Waiter& waiter = wait.waiter;
    if (!completion.enlist(waiter)) return true;
    if (const auto taken = baton_.take_idle(waiter)) {
        if (*taken == Baton::Taken::stolen) poller_.summon();
        if (*taken == Baton::Taken::queued) waiter.sleep(std::nullopt);
        const bool drives = *taken != Baton::Taken::queued || waiter.granted();
        if (drives && !waiter.told()) {
            const Outcome outcome = drive(wait, std::nullopt, true);
            release_baton();
            if (outcome == Outcome::claimed) run_claimed();
        } else if (baton_.leave(waiter)) {
            release_baton();
        }
    }
    if (waiter.told()) return true;
    if (completion.delist(waiter)) return false;
    waiter.await_told(1);
    return true;
}

// Returns, without the baton, when the wait is over or the deadline passed.
void Progress::wait_as(Wait& wait, std::optional<TimePoint> deadline) {
    Waiter& waiter = wait.waiter;
    for (;;) {
        const auto taken = baton_.take(waiter);
        if (taken == Baton::Taken::stolen) poller_.summon();
        if (taken == Baton::Taken::queued) {
            if (wait.enlist()) waiter.sleep(deadline);
            if (wait.over() || !waiter.granted()) {
                if (baton_.leave(waiter)) release_baton();
                return;
            }
            waiter.clear_grant();
        }
        const Outcome outcome = drive(wait, deadline);
        release_baton();
        if (outcome != Outcome::claimed) return;
        run_claimed();
        if (wait.over() || (deadline && SteadyClock{}.now() >= *deadline)) return;
    }
}

// Does at least one turn, even after the deadline, so that repeated calls make progress. Never
// returns between a sleep and a turn, so that asleep_ stays correct.
Progress::Outcome Progress::drive(Wait& wait, std::optional<TimePoint> deadline,
                                  bool gives_way) noexcept {
    Spin spin(gives_way ? background_spin() : waiting_spin());
    TimePoint now = SteadyClock{}.now();
    spin.begin(now);
    for (;; now = SteadyClock{}.now()) {
        TimePoint look_until = gives_way ? TimePoint::min() : spin.look_until();
        if (deadline) look_until = std::min(look_until, *deadline);
        const Turn done = turn(now, look_until, &wait);
        if (done.claimed) return Outcome::claimed;
        if (wait.over()) return Outcome::told;
        if (deadline && now >= *deadline) return Outcome::expired;
        if (gives_way && baton_.contended()) return Outcome::expired;
        if (goes_on(spin, done.active, now)) continue;
        count_processors(now);
        sleep_driving(wait, deadline);
    }
}

void Progress::sleep_driving(Wait& wait, std::optional<TimePoint> deadline) noexcept {
    lock();
    if (!wait.enlist() || !lull()) {
        unlock();
        return;
    }
    sleeper_ = &wait.waiter;
    auto until = fall_asleep();
    if (deadline && (!until || *deadline < *until)) until = deadline;
    poller_.sleep_driving(until);
}

void Progress::release_baton() noexcept {
    const Baton::Follow next = baton_.release();
    follow(next);
    // Harmless if a waiter that is awake got the baton: its next turn wakes the carriers.
    const bool may_be_free = next.sleeper == nullptr;
    if (may_be_free && options_.drive == Drive::user_loop) lull_for_user_loop();
}

void Progress::follow(const Baton::Follow& follow) noexcept {
    if (follow.sleeper != nullptr) wake_sleeper(follow.sleeper);
    if (follow.summon && options_.drive == Drive::background) poller_.summon();
}

}  // namespace nexar::runtime

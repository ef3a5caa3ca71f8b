#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace nexar::run {

/// What happens when a process of a run fails: it is killed by a signal, exits with a code other
/// than 0, or its host is lost.
enum class OnFailure : std::uint8_t {
    end,      // the run ends
    go_on,    // the other processes continue (--on-failure continue)
    restart,  // they continue, and a new process takes its place
};

struct FailureOptions {
    OnFailure mode = OnFailure::end;
    std::uint32_t min = 1;           // at least 1
    std::uint32_t max_restarts = 3;  // for each slot
};

/// Decides whether a run survives the failure of a process, and when to start another one. Each
/// rank with which the run began is a slot; a restarted process takes the slot of the one that
/// failed, but the seed gives it another rank. Pure.
///
/// The run goes on after a failure if a process is still running, and if the processes that run,
/// wait for their restart or have exited with code 0 are at least `min`. So a run that ends by
/// itself has succeeded: at least `min` processes exited with code 0, one of them after the last
/// failure.
class Survivors {
public:
    static constexpr Duration kFirstPause = std::chrono::milliseconds(100);
    static constexpr Duration kLongestPause = std::chrono::seconds(5);

    /// A process to start; `number` is 1 for the first restart of the slot.
    struct Restart {
        std::uint32_t slot = 0;
        std::uint32_t number = 0;

        friend bool operator==(const Restart&, const Restart&) = default;
    };

    /// What a failure means. `text` continues the sentence that reports the failure.
    struct Verdict {
        bool goes_on = false;
        std::string text{};
    };

    Survivors(FailureOptions options, std::uint32_t slots);

    /// The process in a slot: "rank 2", or "process 2.1" after the first restart.
    std::string name(std::uint32_t slot) const;
    bool runs(std::uint32_t slot) const { return slots_.at(slot).running; }

    /// The process in the slot, which runs, has failed.
    Verdict on_failed(TimePoint now, std::uint32_t slot);
    /// Slots on a host that is lost: their processes have failed and cannot be restarted.
    Verdict on_lost(std::uint32_t first, std::uint32_t count);
    /// The process in the slot has exited with code 0. Returns why the run has failed
    /// nevertheless, if it has: no process is left to go on, and too few have succeeded.
    std::optional<std::string> on_succeeded(std::uint32_t slot);
    /// Forgets pending restarts and allows no more.
    void stop_restarts() noexcept;

    /// When to call take_due().
    std::optional<TimePoint> next_deadline() const noexcept;
    /// The processes to start now; they count as running from here.
    std::vector<Restart> take_due(TimePoint now);
    /// True if no process runs and none will be started.
    bool settled() const noexcept;

private:
    struct Slot {
        bool running = true;
        std::uint32_t restarts = 0;
        std::uint32_t succeeded_before = 0;  // processes that had succeeded when it was started
        std::optional<TimePoint> due{};      // of its restart
    };

    std::uint32_t running() const noexcept;
    Verdict judge(const std::string& afterwards);
    bool may_restart(const Slot& slot) const noexcept;

    FailureOptions options_;
    std::vector<Slot> slots_;
    std::uint32_t succeeded_ = 0;
    bool stopped_ = false;
};

}  // namespace nexar::run

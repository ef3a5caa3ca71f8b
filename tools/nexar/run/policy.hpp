#pragma once

#include <nexar/error.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "run/ended.hpp"

namespace nexar::run {

/// An order to signal processes.
struct Order {
    enum class Kind : std::uint8_t {
        signal_units,   // to every running unit
        signal_strays,  // to processes that units left behind
        kill_unit,      // SIGKILL to the process group of one unit
        kill_all,       // SIGKILL until no process is left
    };

    Kind kind = Kind::signal_units;
    int signal = 0;
    std::size_t unit = 0;  // for kill_unit

    friend bool operator==(const Order&, const Order&) = default;
};

/// Decides how a run proceeds and ends. A unit is a rank, or the part of the run on another host.
/// Pure: takes events and the time, returns orders and lines to print.
///
/// The first unit that fails ends the run, unless the caller says on_gone() instead: the others get
/// SIGTERM, and SIGKILL after the grace period. External signals are forwarded. SIGTERM and SIGINT
/// start the grace period; after SIGHUP and SIGQUIT, which programs also use for other purposes,
/// the first unit that ends starts it. A second terminating signal kills all units. When all units
/// have ended, the processes they left behind have a moment to end by themselves, then get SIGTERM,
/// then SIGKILL. The exit code is that of the first failure, or of the abort that caused it.
class Policy {
public:
    struct Options {
        std::vector<std::string> units;  // "rank 2"
        Duration grace = std::chrono::seconds(10);
        Duration linger = std::chrono::seconds(1);
        /// Stays after the last unit has ended, which may be restarted, until release() or a signal
        /// that asks to end.
        bool holds = false;
    };

    explicit Policy(Options options);

    void on_signal(TimePoint now, int signal);
    void on_not_started(TimePoint now, std::size_t unit, const std::string& why);
    void on_ended(TimePoint now, std::size_t unit, const Ended& ended);
    /// A rank has aborted the program. The failures that follow are consequences: a single line
    /// reports the abort instead, and the exit code is that of the rank that aborted.
    void on_aborted(const Error& aborted);
    /// A unit ended in a way that the caller describes (on_failed), or counts as failed although
    /// its process still runs, and gets SIGKILL (on_unreachable).
    void on_failed(TimePoint now, std::size_t unit, int code, const std::string& line);
    void on_unreachable(TimePoint now, std::size_t unit, const std::string& line);
    /// A unit has ended and no longer counts, and the run goes on.
    void on_gone(TimePoint now, std::size_t unit);
    /// SIGKILL for a unit that counts as failed, although the run goes on.
    void cut_off(std::size_t unit);
    /// A unit that has ended runs again.
    void on_restarted(std::size_t unit);
    /// A process that is not a whole unit failed, and the run ends. `others`: some still run.
    void on_process_failed(TimePoint now, int code, const std::string& line, bool others);
    /// Nothing will be restarted any more.
    void release(TimePoint now);
    /// The reader of the output is gone.
    void on_output_lost();
    /// The launcher of this part is gone.
    void on_abandoned();
    /// No process is left.
    void on_alone();
    void on_time(TimePoint now);

    /// When to call on_time().
    std::optional<TimePoint> next_deadline() const noexcept { return deadline_; }
    std::vector<Order> take_orders();
    std::vector<std::string> take_lines();

    bool finished() const noexcept { return finished_; }
    /// True while nothing has failed and no signal has asked the run to end.
    bool undisturbed() const noexcept { return phase_ == Phase::running && !asked_to_end_; }
    bool failed() const noexcept { return exit_code_.has_value(); }
    /// True if the run failed and no abort explains it.
    bool failed_by_itself() const noexcept { return failed() && !abort_; }
    int exit_code() const noexcept { return exit_code_.value_or(0); }

private:
    enum class Phase : std::uint8_t { running, ending, strays, strays_told, killing };

    void fail(TimePoint now, int code, const std::string& how);
    void fail(TimePoint now, int code, const std::string& how, bool others);
    void begin_ending(TimePoint now);
    void one_less(TimePoint now, std::size_t unit);
    void look_whether_all_ended(TimePoint now);
    void kill();
    std::string still_running() const;

    Options options_;
    Phase phase_ = Phase::running;
    std::vector<bool> running_;
    std::optional<int> asked_to_end_;  // the external signal that did
    std::optional<int> exit_code_;
    std::optional<Error> abort_;
    std::optional<TimePoint> deadline_;
    bool holding_;
    bool alone_ = false;  // no process was left when the last unit ended
    bool finished_ = false;
    std::vector<Order> orders_;
    std::vector<std::string> lines_;
};

}  // namespace nexar::run

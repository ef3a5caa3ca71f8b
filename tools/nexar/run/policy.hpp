#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "run/ended.hpp"

namespace nexar::run {

/// What is to be done to processes.
struct Order {
    enum class Kind : std::uint8_t {
        signal_units,   // to every unit that runs
        signal_strays,  // to what units left behind
        kill_all,       // SIGKILL until nothing is left
    };

    Kind kind = Kind::signal_units;
    int signal = 0;

    friend bool operator==(const Order&, const Order&) = default;
};

/// Decides how a run goes on and ends. A unit is what was started: a rank, or the part of the run
/// on another host. Pure: events and the time come in, orders and lines to print go out.
///
/// The first unit that fails ends the run: the others get SIGTERM, and what is left after the grace
/// time SIGKILL. A signal from outside is passed on; after one that asks to end, the first unit
/// that ends starts the grace time, and a second such signal kills. When all units ended, processes
/// that they left behind have a moment to end by themselves, then SIGTERM, then SIGKILL. The exit
/// code is that of the first failure.
class Policy {
public:
    struct Options {
        std::vector<std::string> units;  // "rank 2"
        Duration grace = std::chrono::seconds(10);
        Duration linger = std::chrono::seconds(1);
    };

    explicit Policy(Options options);

    void on_signal(int signal);
    void on_not_started(TimePoint now, std::size_t unit, const std::string& why);
    void on_ended(TimePoint now, std::size_t unit, const Ended& ended);
    /// Nobody reads what is written any more.
    void on_output_lost();
    /// Who wants this run is gone.
    void on_abandoned();
    /// No process is left.
    void on_alone();
    void on_time(TimePoint now);

    /// When on_time() is to be called.
    std::optional<TimePoint> next_deadline() const noexcept { return deadline_; }
    std::vector<Order> take_orders();
    std::vector<std::string> take_lines();

    bool finished() const noexcept { return finished_; }
    int exit_code() const noexcept { return exit_code_.value_or(0); }

private:
    enum class Phase : std::uint8_t { running, ending, strays, strays_told, killing };

    void fail(TimePoint now, int code, const std::string& line);
    void one_less(TimePoint now, std::size_t unit);
    void kill();
    std::string still_running() const;

    Options options_;
    Phase phase_ = Phase::running;
    std::vector<bool> running_;
    std::optional<int> asked_to_end_;  // the signal from outside that did
    std::optional<int> exit_code_;
    std::optional<TimePoint> deadline_;
    bool finished_ = false;
    std::vector<Order> orders_;
    std::vector<std::string> lines_;
};

}  // namespace nexar::run

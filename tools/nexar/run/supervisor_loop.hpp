#pragma once

#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "run/caught_signals.hpp"
#include "run/early_ends.hpp"
#include "run/host_watch.hpp"
#include "run/keeper.hpp"
#include "run/launcher_line.hpp"
#include "run/part_messages.hpp"
#include "run/policy.hpp"
#include "run/supervisor.hpp"
#include "run/survivors.hpp"
#include "run/unit_streams.hpp"

namespace nexar::run {

/// The loop of supervise(), from the start of the units to the end of their last output.
class SupervisorLoop {
public:
    /// All arguments must outlive the loop.
    SupervisorLoop(const SupervisorOptions& options, Meeting& meeting, CaughtSignals& signals,
                   Keeper& keeper, std::vector<UnitStreams>& streams);

    /// Returns the exit code.
    int run(const std::string& join);

private:
    // The loop itself (supervisor_loop.cpp).
    void turn();
    void turn_to_end();
    void watch(int descriptor, short events);
    bool is_ready(int descriptor) const;
    void watch_outputs();
    void write_outputs();
    int timeout_ms() const;
    int milliseconds_until(const std::optional<TimePoint>& deadline) const;
    void look_at_time();
    void beat();
    void take_signals();
    void move_streams();
    void hear_all_hosts();
    void obey_policy();
    InputSink* typed_to();
    bool types();
    void take_input();
    void say(std::string_view line);
    void tell(std::size_t unit, const ToPart& message);
    HostWatch* host_of(std::size_t unit);
    bool has_hosts() const;

    // What happens to units and ranks (supervisor_events.cpp).
    void take_reports();
    void on_not_started(std::size_t unit, const std::string& why);
    void on_unit_ended(std::size_t unit, const Ended& ended);
    void on_part_ended(std::size_t unit, const Ended& ended);
    void on_host_lost(TimePoint now, std::size_t unit);
    void on_rank_ended(std::uint32_t rank, const Ended& ended);
    bool take_word(std::size_t unit, std::string_view line);
    void obey_launcher(TimePoint now, const ToPart& order);
    bool tolerates() const;
    void on_slot_ended(std::size_t unit, std::uint32_t slot, const Ended& ended);
    void on_slot_failed(std::size_t unit, std::uint32_t slot, const Ended& ended);
    void end_run(std::size_t unit, int code, const std::string& line);
    void start_due();
    void restart(std::size_t unit, std::uint32_t number, const std::string& join);
    std::size_t unit_of(std::uint32_t slot) const;

    const SupervisorOptions& options_;
    Meeting& meeting_;
    CaughtSignals& signals_;
    Keeper& keeper_;
    std::vector<UnitStreams>& streams_;
    SteadyClock clock_;
    Policy policy_;
    OutputStream output_{STDOUT_FILENO};
    OutputStream errors_{STDERR_FILENO};
    std::vector<pollfd> polled_;
    EarlyEnds early_ends_;
    std::vector<std::optional<HostWatch>> hosts_;  // by unit
    std::optional<LauncherLine> launcher_{};       // of a part
    std::optional<Survivors> survivors_{};         // of a launcher whose run outlives failures
    int last_failure_ = 0;                         // exit code of the last process that failed
    bool settled_ = false;                         // the parts know that nothing will be restarted
    std::optional<TimePoint> beat_at_{};
};

}  // namespace nexar::run

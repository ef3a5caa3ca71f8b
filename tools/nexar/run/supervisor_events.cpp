// What the end of a unit, of a rank or of a host means for a run.

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <variant>

#include "base/assert.hpp"
#include "run/supervisor_loop.hpp"
#include "run/units.hpp"

namespace nexar::run {

namespace {

constexpr int kExitHostLost = 255;  // ssh's code for a lost connection

}  // namespace

void SupervisorLoop::take_reports() {
    while (const auto report = keeper_.take_report()) {
        if (report->kind == Report::Kind::alone) {
            policy_.on_alone();
            continue;
        }
        // Print its last output before the report of its end.
        UnitStreams& unit = streams_.at(report->unit);
        unit.output.drain(output_);
        unit.errors.drain(errors_);
        if (report->kind == Report::Kind::ended) {
            on_unit_ended(report->unit, Ended::from_status(report->value));
        } else {
            on_not_started(report->unit,
                           fmt::format("{}: {}", options_.units[report->unit].command[0],
                                       std::generic_category().message(report->value)));
        }
    }
}

/// True if a failure need not end the run.
bool SupervisorLoop::tolerates() const {
    return options_.failure.mode != OnFailure::end && policy_.undisturbed();
}

void SupervisorLoop::on_not_started(std::size_t unit, const std::string& why) {
    // A report with the code of a shell for a missing program follows.
    if (tolerates() && options_.units[unit].is_rank()) {
        say(fmt::format("{} cannot be started: {}", options_.units[unit].name, why));
    } else {
        policy_.on_not_started(clock_.now(), unit, why);
    }
}

void SupervisorLoop::on_unit_ended(std::size_t unit, const Ended& ended) {
    const auto aborted = ended.failed() ? meeting_.aborted() : std::nullopt;
    if (aborted) policy_.on_aborted(*aborted);
    if (!options_.units[unit].is_rank()) {
        on_part_ended(unit, ended);
        return;
    }
    const std::uint32_t rank = options_.units[unit].first_rank;
    if (survivors_) {
        on_slot_ended(unit, rank, ended);
    } else if (tolerates() && ended.failed()) {
        policy_.on_gone(clock_.now(), unit);  // of a part: the launcher decides
    } else {
        policy_.on_ended(clock_.now(), unit, ended);
    }
    on_rank_ended(rank, ended);
}

/// The part on another host, or the ssh process that connects to it, has ended.
void SupervisorLoop::on_part_ended(std::size_t unit, const Ended& ended) {
    const TimePoint now = clock_.now();
    const auto watch = std::exchange(hosts_[unit], std::nullopt);
    const bool failed = watch && (ended.failed() || !watch->finished());
    if (!survivors_ || !tolerates()) {
        if (failed) {
            policy_.on_failed(now, unit, std::max(ended.exit_code(), 1), watch->explain(ended));
        } else {
            policy_.on_ended(now, unit, ended);
        }
        return;
    }
    if (!failed) {
        policy_.on_gone(now, unit);  // in good order, or it was cut off
        return;
    }
    last_failure_ = std::max(ended.exit_code(), 1);
    const Unit& part = options_.units[unit];
    const auto verdict = survivors_->on_lost(part.first_rank, part.ranks);
    if (verdict.goes_on && meeting_.formed()) {
        say(watch->explain(ended) + verdict.text);
        policy_.on_gone(now, unit);
    } else {
        policy_.on_failed(now, unit, last_failure_, watch->explain(ended) + verdict.text);
    }
}

void SupervisorLoop::on_host_lost(TimePoint now, std::size_t unit) {
    const HostWatch* const host = host_of(unit);
    NEXAR_ASSERT(host != nullptr, "only a host that is watched can be lost");
    const std::string why = host->why_lost();
    hosts_[unit].reset();
    if (!survivors_ || !tolerates()) {
        policy_.on_unreachable(now, unit, why);
        return;
    }
    last_failure_ = kExitHostLost;
    const auto verdict =
        survivors_->on_lost(options_.units[unit].first_rank, options_.units[unit].ranks);
    if (verdict.goes_on && meeting_.formed()) {
        say(why + verdict.text);
        policy_.cut_off(unit);
    } else {
        policy_.on_unreachable(now, unit, why + verdict.text);
    }
}

/// A rank on this host or another one has ended.
void SupervisorLoop::on_rank_ended(std::uint32_t rank, const Ended& ended) {
    if (launcher_) {
        output_.add(encode(FromPart(RankEnded{.rank = rank, .how = ended})));
        return;
    }
    if (!ended.failed()) meeting_.on_rank_done(rank);
    early_ends_.on_ended(clock_.now(), rank, ended);
}

/// Takes a line from a part on another host; true if it is a message to this launcher.
bool SupervisorLoop::take_word(std::size_t unit, std::string_view line) {
    const auto message = decode_from_part(line);
    HostWatch* const host = host_of(unit);
    if (!message || host == nullptr) return message.has_value();
    host->on_started(clock_.now());
    if (const auto* ended = std::get_if<RankEnded>(&*message)) {
        const Unit& part = options_.units[unit];
        const bool known =
            ended->rank >= part.first_rank && ended->rank - part.first_rank < part.ranks;
        if (!known) return true;
        if (survivors_) {
            const auto aborted = ended->how.failed() ? meeting_.aborted() : std::nullopt;
            if (aborted) policy_.on_aborted(*aborted);
            on_slot_ended(unit, ended->rank, ended->how);
        }
        on_rank_ended(ended->rank, ended->how);
    } else if (std::holds_alternative<Finished>(*message)) {
        host->on_finished();
    }
    return true;
}

/// Only in a launcher whose run outlives failures. `unit` is the process itself, or the part of the
/// run that it belongs to.
void SupervisorLoop::on_slot_ended(std::size_t unit, std::uint32_t slot, const Ended& ended) {
    if (!survivors_ || !survivors_->runs(slot)) return;
    if (ended.failed()) {
        on_slot_failed(unit, slot, ended);
        return;
    }
    const auto too_few = survivors_->on_succeeded(slot);
    if (too_few && tolerates()) {
        policy_.on_process_failed(clock_.now(), std::max(last_failure_, 1), *too_few, false);
    }
    if (options_.units[unit].is_rank()) policy_.on_ended(clock_.now(), unit, ended);
}

void SupervisorLoop::on_slot_failed(std::size_t unit, std::uint32_t slot, const Ended& ended) {
    if (!survivors_) return;
    const TimePoint now = clock_.now();
    const bool is_rank = options_.units[unit].is_rank();
    const std::string how = fmt::format("{} {}", survivors_->name(slot), to_text(ended));
    const bool tolerated = tolerates() && !meeting_.aborted();
    const auto verdict = survivors_->on_failed(now, slot);
    last_failure_ = ended.exit_code();
    if (!tolerated) {
        if (is_rank) policy_.on_ended(now, unit, ended);
        if (!is_rank && policy_.undisturbed()) end_run(unit, last_failure_, how);
    } else if (!meeting_.formed()) {
        survivors_->stop_restarts();
        end_run(unit, last_failure_, how + " before the world had formed");
    } else if (!verdict.goes_on) {
        end_run(unit, last_failure_, how + verdict.text);
    } else {
        say(how + verdict.text);
        if (is_rank) policy_.on_gone(now, unit);
    }
}

/// A process of this unit has failed, and the run with it.
void SupervisorLoop::end_run(std::size_t unit, int code, const std::string& line) {
    const TimePoint now = clock_.now();
    if (options_.units[unit].is_rank()) {
        policy_.on_failed(now, unit, code, line);
    } else {
        policy_.on_process_failed(now, code, line, true);
    }
}

std::size_t SupervisorLoop::unit_of(std::uint32_t slot) const {
    const auto found = std::ranges::find_if(options_.units, [&](const Unit& unit) {
        return slot >= unit.first_rank && slot - unit.first_rank < unit.ranks;
    });
    NEXAR_ASSERT(found != options_.units.end(), "every rank belongs to a unit");
    return static_cast<std::size_t>(found - options_.units.begin());
}

/// Starts the processes whose pause is over.
void SupervisorLoop::start_due() {
    if (!survivors_ || !tolerates()) return;
    for (const Survivors::Restart& due : survivors_->take_due(clock_.now())) {
        const std::size_t unit = unit_of(due.slot);
        const auto join = meeting_.join_again();
        if (!join) {
            say(fmt::format("{} cannot be started: {}", survivors_->name(due.slot),
                            join.error().what()));
            on_slot_failed(unit, due.slot, Ended{.number = 1});
        } else if (options_.units[unit].is_rank()) {
            restart(unit, due.number, *join);
        } else {
            tell(unit, Restart{.rank = due.slot, .number = due.number, .join = *join});
        }
    }
}

/// Starts a rank on this host again.
void SupervisorLoop::restart(std::size_t unit, std::uint32_t number, const std::string& join) {
    const Unit& restarted = options_.units[unit];
    UnitStreams& streams = streams_[unit];
    streams.output.drain(output_);
    streams.errors.drain(errors_);
    streams.output.begin_anew(output_, prefix_after(restarted.output_prefix, number));
    streams.errors.begin_anew(errors_, prefix_after(restarted.errors_prefix, number));
    streams.input.close();
    policy_.on_restarted(unit);
    keeper_.restart_unit(unit, number, join);
}

/// An order to this part from its launcher.
void SupervisorLoop::obey_launcher(TimePoint now, const ToPart& order) {
    if (const auto* pass_on = std::get_if<PassOn>(&order)) {
        policy_.on_signal(now, pass_on->signal);
    } else if (const auto* asked = std::get_if<Restart>(&order)) {
        const auto known = [&](const Unit& unit) {
            return unit.first_rank == asked->rank && unit.restarts;
        };
        if (policy_.undisturbed() && std::ranges::any_of(options_.units, known)) {
            restart(unit_of(asked->rank), asked->number, asked->join);
        }
    } else if (std::holds_alternative<Settle>(order)) {
        policy_.release(now);
    }
}

}  // namespace nexar::run

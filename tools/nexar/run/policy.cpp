#include "run/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/assert.hpp"
#include "base/quantity.hpp"

namespace nexar::run {

namespace {

constexpr int kExitNotStarted = 127;   // a shell's code for a missing program
constexpr int kExitUnreachable = 255;  // ssh's code for a lost connection

bool asks_to_end(int signal) {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

/// False for SIGHUP and SIGQUIT: programs also use them to reload their configuration or to dump
/// stacks, and may continue after them.
bool starts_grace(int signal) {
    return signal == SIGINT || signal == SIGTERM;
}

/// The exit code of the process that called Communicator::abort().
int status_of_abort(const Error& aborted) {
    const int code = aborted.abort_code().value_or(1);
    return code >= 1 && code <= 255 ? code : 1;
}

}  // namespace

Policy::Policy(Options options)
    : options_(std::move(options)),
      running_(options_.units.size(), true),
      holding_(options_.holds) {
    NEXAR_ASSERT(!options_.units.empty());
}

void Policy::on_signal(TimePoint now, int signal) {
    // A terminal that goes away and some service managers send SIGHUP along with another signal.
    const bool again = asked_to_end_ && signal != SIGHUP;
    if (asks_to_end(signal) && (again || phase_ >= Phase::strays)) {
        if (phase_ != Phase::killing) {
            lines_.push_back(
                fmt::format("received {} again; killing all processes", signal_name(signal)));
        }
        if (!exit_code_) exit_code_ = 128 + signal;
        kill();
        return;
    }
    if (asks_to_end(signal)) asked_to_end_ = signal;
    if (starts_grace(signal) && phase_ == Phase::running) deadline_ = now + options_.grace;
    orders_.push_back({.kind = Order::Kind::signal_units, .signal = signal});
    if (asks_to_end(signal) && holding_) release(now);
}

void Policy::on_not_started(TimePoint now, std::size_t unit, const std::string& why) {
    if (!running_.at(unit)) return;
    fail(now, kExitNotStarted, fmt::format("{} cannot be started: {}", options_.units[unit], why));
    one_less(now, unit);
}

void Policy::on_aborted(const Error& aborted) {
    if (!abort_) abort_ = aborted;
}

void Policy::on_ended(TimePoint now, std::size_t unit, const Ended& ended) {
    if (!running_.at(unit)) return;
    if (ended.failed()) {
        fail(now, ended.exit_code(), fmt::format("{} {}", options_.units[unit], to_text(ended)));
    } else if (asked_to_end_ && phase_ == Phase::running) {
        begin_ending(now);
    }
    one_less(now, unit);
}

void Policy::on_failed(TimePoint now, std::size_t unit, int code, const std::string& line) {
    if (!running_.at(unit)) return;
    fail(now, code, line);
    one_less(now, unit);
}

void Policy::on_unreachable(TimePoint now, std::size_t unit, const std::string& line) {
    if (!running_.at(unit)) return;
    fail(now, kExitUnreachable, line);
    orders_.push_back({.kind = Order::Kind::kill_unit, .signal = SIGKILL, .unit = unit});
}

void Policy::on_gone(TimePoint now, std::size_t unit) {
    if (running_.at(unit)) one_less(now, unit);
}

void Policy::cut_off(std::size_t unit) {
    orders_.push_back({.kind = Order::Kind::kill_unit, .signal = SIGKILL, .unit = unit});
}

void Policy::on_restarted(std::size_t unit) {
    running_.at(unit) = true;
    alone_ = false;
}

void Policy::on_process_failed(TimePoint now, int code, const std::string& line, bool others) {
    fail(now, code, line, others);
}

void Policy::release(TimePoint now) {
    if (!std::exchange(holding_, false)) return;
    look_whether_all_ended(now);
    if (alone_) on_alone();
}

/// Keeps a grace period that a signal has started.
void Policy::begin_ending(TimePoint now) {
    phase_ = Phase::ending;
    if (!deadline_) deadline_ = now + options_.grace;
}

void Policy::fail(TimePoint now, int code, const std::string& how) {
    fail(now, code, how, std::ranges::count(running_, true) > 1);
}

void Policy::fail(TimePoint now, int code, const std::string& how, bool others) {
    if (!exit_code_) exit_code_ = abort_ ? status_of_abort(*abort_) : code;
    const std::string& line = abort_ ? abort_->cause() : how;
    // A unit that ended because of our signal or of the abort needs no line.
    const bool told = code == 128 + SIGTERM || code == 128 + SIGKILL || abort_;
    if (phase_ != Phase::running) {
        if (code > 128 && !told && code != 128 + asked_to_end_.value_or(0)) lines_.push_back(line);
        return;
    }
    begin_ending(now);
    if (asked_to_end_ || !others) {
        lines_.push_back(line);
        return;
    }
    orders_.push_back({.kind = Order::Kind::signal_units, .signal = SIGTERM});
    lines_.push_back(fmt::format("{}; the others get SIGTERM, and SIGKILL after {}", line,
                                 format_duration(options_.grace)));
}

void Policy::one_less(TimePoint now, std::size_t unit) {
    running_[unit] = false;
    look_whether_all_ended(now);
}

void Policy::look_whether_all_ended(TimePoint now) {
    if (std::ranges::count(running_, true) != 0 || phase_ == Phase::killing || holding_) return;
    phase_ = Phase::strays;
    deadline_ = now + options_.linger;
}

void Policy::on_output_lost() {
    if (!exit_code_) exit_code_ = 128 + SIGPIPE;
    kill();
}

void Policy::on_abandoned() {
    if (!exit_code_) exit_code_ = 128 + SIGHUP;
    kill();
}

void Policy::on_alone() {
    if (std::ranges::count(running_, true) != 0) return;
    alone_ = true;
    if (holding_ && phase_ != Phase::killing) return;
    finished_ = true;
    deadline_.reset();
}

void Policy::on_time(TimePoint now) {
    if (finished_ || !deadline_ || now < *deadline_) return;
    deadline_.reset();
    switch (phase_) {
        case Phase::running:  // after a signal that asked to end
        case Phase::ending:
            if (!exit_code_ && asked_to_end_) exit_code_ = 128 + *asked_to_end_;
            lines_.push_back(fmt::format("{} did not end within {}; sending SIGKILL",
                                         still_running(), format_duration(options_.grace)));
            kill();
            break;
        case Phase::strays:
            phase_ = Phase::strays_told;
            deadline_ = now + options_.grace;
            lines_.emplace_back("the ranks left processes behind; sending them SIGTERM");
            orders_.push_back({.kind = Order::Kind::signal_strays, .signal = SIGTERM});
            break;
        case Phase::strays_told:
            kill();
            break;
        default:
            break;
    }
}

void Policy::kill() {
    if (phase_ == Phase::killing || finished_) return;
    phase_ = Phase::killing;
    deadline_.reset();
    orders_.push_back({.kind = Order::Kind::kill_all, .signal = SIGKILL});
    if (alone_) on_alone();
}

std::string Policy::still_running() const {
    constexpr int kShown = 8;
    std::string text;
    int shown = 0;
    for (std::size_t unit = 0; unit < running_.size(); ++unit) {
        if (!running_[unit]) continue;
        if (shown++ == kShown) return text + " and others";
        text += (text.empty() ? "" : ", ") + options_.units[unit];
    }
    return text;
}

std::vector<Order> Policy::take_orders() {
    return std::exchange(orders_, {});
}

std::vector<std::string> Policy::take_lines() {
    return std::exchange(lines_, {});
}

}  // namespace nexar::run

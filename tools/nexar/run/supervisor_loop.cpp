#include "run/supervisor_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

namespace nexar::run {

namespace {

std::vector<std::string> names_of(const std::vector<Unit>& units) {
    std::vector<std::string> names;
    names.reserve(units.size());
    for (const Unit& unit : units) names.push_back(unit.name);
    return names;
}

/// One watch for each unit that is a part on another host.
std::vector<std::optional<HostWatch>> watches_of(const SupervisorOptions& options, TimePoint now) {
    std::vector<std::optional<HostWatch>> watches(options.units.size());
    for (std::size_t i = 0; i < watches.size(); ++i) {
        const Unit& unit = options.units[i];
        if (unit.is_rank()) continue;
        watches[i].emplace(HostWatch::Options{.unit = unit.name,
                                              .remote_nexar = unit.remote_nexar,
                                              .timeout = options.host_timeout},
                           now);
    }
    return watches;
}

std::optional<TimePoint> earlier(const std::optional<TimePoint>& a,
                                 const std::optional<TimePoint>& b) {
    return a && b ? std::min(*a, *b) : a ? a : b;
}

}  // namespace

SupervisorLoop::SupervisorLoop(const SupervisorOptions& options, Meeting& meeting,
                               CaughtSignals& signals, Keeper& keeper,
                               std::vector<UnitStreams>& streams)
    : options_(options),
      meeting_(meeting),
      signals_(signals),
      keeper_(keeper),
      streams_(streams),
      policy_({.units = names_of(options.units),
               .grace = options.grace,
               .holds = options.is_part && options.failure.mode == OnFailure::restart}),
      early_ends_(options.world),
      hosts_(watches_of(options, clock_.now())) {
    if (options.is_part) launcher_.emplace(options.host_timeout, clock_.now());
    if (!options.is_part && options.failure.mode != OnFailure::end) {
        survivors_.emplace(options.failure, options.world);
    }
    if (options.is_part || has_hosts()) beat_at_ = clock_.now();
}

int SupervisorLoop::run(const std::string& join) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        if (options_.units[i].is_rank()) continue;
        streams_[i].input.add(options_.units[i].header(join));
        streams_[i].output.set_filter(
            [this, i](std::string_view line) { return take_word(i, line); });
    }
    // Comes before any output of the ranks, so that the launcher knows this part has started.
    if (launcher_) output_.add(encode(FromPart(Alive{})));
    while (!policy_.finished() && !keeper_.gone()) turn();
    // No process that could write more is left.
    for (UnitStreams& unit : streams_) {
        for (LineSource* source : {&unit.output, &unit.errors}) {
            OutputStream& to = source == &unit.output ? output_ : errors_;
            source->drain(to);
            if (source->is_open()) source->finish(to);
        }
    }
    if (!policy_.finished()) say("the keeper process was killed, and the ranks with it");
    if (launcher_) output_.add(encode(FromPart(Finished{})));
    while (output_.has_pending() || errors_.has_pending()) {
        if (launcher_ && launcher_->lost(clock_.now())) break;  // nobody reads
        turn_to_end();
    }
    return policy_.finished() ? policy_.exit_code() : 128 + SIGKILL;
}

void SupervisorLoop::turn() {
    polled_.clear();
    watch(signals_.descriptor(), POLLIN);
    watch(keeper_.descriptor(), POLLIN);
    if (launcher_ ? launcher_->is_open() : types()) watch(STDIN_FILENO, POLLIN);
    for (const UnitStreams& unit : streams_) {
        if (unit.output.is_open() && !output_.is_full()) watch(unit.output.descriptor(), POLLIN);
        if (unit.errors.is_open() && !errors_.is_full()) watch(unit.errors.descriptor(), POLLIN);
        if (unit.input.has_pending()) watch(unit.input.descriptor(), POLLOUT);
    }
    watch_outputs();
    ::poll(polled_.data(), polled_.size(), timeout_ms());
    write_outputs();
    take_signals();
    take_input();
    move_streams();
    take_reports();
    look_at_time();
    if (output_.lost() || errors_.lost()) policy_.on_output_lost();
    obey_policy();
}

/// Writes the remaining output. SIGINT and SIGTERM end the wait.
void SupervisorLoop::turn_to_end() {
    polled_.clear();
    watch(signals_.descriptor(), POLLIN);
    if (launcher_) watch(STDIN_FILENO, POLLIN);
    watch_outputs();
    ::poll(polled_.data(), polled_.size(),
           launcher_ ? milliseconds_until(launcher_->deadline()) : -1);
    write_outputs();
    if (launcher_) take_input();
    while (const auto signal = signals_.take()) {
        if (*signal == SIGINT || *signal == SIGTERM) ::_exit(128 + *signal);
    }
}

void SupervisorLoop::watch(int descriptor, short events) {
    polled_.push_back({.fd = descriptor, .events = events, .revents = 0});
}

bool SupervisorLoop::is_ready(int descriptor) const {
    const auto found = std::ranges::find(polled_, descriptor, &pollfd::fd);
    return found != polled_.end() && found->revents != 0;
}

void SupervisorLoop::watch_outputs() {
    if (output_.has_pending()) watch(output_.descriptor(), POLLOUT);
    if (errors_.has_pending()) watch(errors_.descriptor(), POLLOUT);
}

void SupervisorLoop::write_outputs() {
    if (is_ready(output_.descriptor())) output_.write_some();
    if (is_ready(errors_.descriptor())) errors_.write_some();
}

int SupervisorLoop::timeout_ms() const {
    auto due = earlier(policy_.next_deadline(), early_ends_.next_deadline());
    due = earlier(due, beat_at_);
    if (launcher_) due = earlier(due, launcher_->deadline());
    if (survivors_) due = earlier(due, survivors_->next_deadline());
    for (const auto& host : hosts_) {
        if (host) due = earlier(due, host->deadline());
    }
    return milliseconds_until(due);
}

int SupervisorLoop::milliseconds_until(const std::optional<TimePoint>& deadline) const {
    if (!deadline) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - clock_.now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

void SupervisorLoop::look_at_time() {
    const TimePoint now = clock_.now();
    policy_.on_time(now);
    early_ends_.on_time(now);
    start_due();
    if (launcher_ && launcher_->is_open() && launcher_->lost(now)) {
        launcher_->hang_up();
        say("the launcher has been silent for too long; killing the ranks on this host");
        policy_.on_abandoned();
    }
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
        const HostWatch* const host = host_of(i);
        if (host != nullptr && now >= host->deadline()) on_host_lost(now, i);
    }
    if (beat_at_ && now >= *beat_at_) {
        beat_at_ = now + beat_of(options_.host_timeout);
        beat();
    }
}

/// Sends heartbeats, except where output is pending: that is a sign of life itself, or will never
/// arrive.
void SupervisorLoop::beat() {
    if (launcher_ && !output_.has_pending()) output_.add(encode(FromPart(Alive{})));
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        if (options_.units[i].is_rank() || streams_[i].input.has_pending()) continue;
        tell(i, Alive{});
    }
}

void SupervisorLoop::tell(std::size_t unit, const ToPart& message) {
    streams_[unit].input.add(encode(message));
    streams_[unit].input.write_some();
}

/// Null for a rank, and for a host that has ended or is lost.
HostWatch* SupervisorLoop::host_of(std::size_t unit) {
    auto& watched = hosts_.at(unit);
    return watched ? &*watched : nullptr;
}

bool SupervisorLoop::has_hosts() const {
    return std::ranges::any_of(hosts_, [](const auto& host) { return host.has_value(); });
}

void SupervisorLoop::take_signals() {
    while (const auto signal = signals_.take()) {
        policy_.on_signal(clock_.now(), *signal);
        if (*signal == SIGCONT) hear_all_hosts();
        if (*signal != SIGTSTP) continue;
        obey_policy();
        ::raise(SIGSTOP);  // until SIGCONT, the next signal that the descriptor reports
    }
}

void SupervisorLoop::move_streams() {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        UnitStreams& unit = streams_[i];
        // A host whose output we do not read does not count as silent.
        bool heard = output_.is_full();
        if (!output_.is_full()) heard |= unit.output.read_some(output_);
        if (!errors_.is_full()) heard |= unit.errors.read_some(errors_);
        HostWatch* const host = host_of(i);
        if (heard && host != nullptr) host->on_heard(clock_.now());
        unit.input.write_some();
    }
}

/// Restarts all timeouts after this process was stopped.
void SupervisorLoop::hear_all_hosts() {
    for (auto& host : hosts_) {
        if (host) host->on_heard(clock_.now());
    }
}

void SupervisorLoop::obey_policy() {
    if (!policy_.undisturbed()) {
        early_ends_.on_run_ending(policy_.failed_by_itself());
        if (survivors_) survivors_->stop_restarts();
    }
    for (const std::string& line : policy_.take_lines()) say(line);
    for (const std::string& line : early_ends_.take_lines()) say(line);
    for (const Order& order : policy_.take_orders()) {
        keeper_.give(order);
        if (order.kind != Order::Kind::signal_units) continue;
        for (std::size_t i = 0; i < streams_.size(); ++i) {
            if (!options_.units[i].is_rank()) tell(i, PassOn{.signal = order.signal});
        }
    }
    if (!survivors_ || settled_ || !survivors_->settled()) return;
    settled_ = true;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        if (!options_.units[i].is_rank()) tell(i, Settle{});
    }
}

void SupervisorLoop::say(std::string_view line) {
    errors_.add(fmt::format("nexar run: {}\n", line));
}

/// The input of the unit that gets what the user types into this terminal, if it is open.
InputSink* SupervisorLoop::typed_to() {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        if (options_.units[i].gets_input && streams_[i].input.is_open()) return &streams_[i].input;
    }
    return nullptr;
}

bool SupervisorLoop::types() {
    const InputSink* const sink = typed_to();
    return sink != nullptr && !sink->has_pending() && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
}

void SupervisorLoop::take_input() {
    if (!is_ready(STDIN_FILENO)) return;
    std::array<char, 4096> bytes;
    const ssize_t n = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    const std::string_view text(bytes.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    if (launcher_) {
        const TimePoint now = clock_.now();
        for (const ToPart& order : launcher_->take(now, text)) obey_launcher(now, order);
        if (!launcher_->is_open()) policy_.on_abandoned();
    } else if (InputSink* const sink = typed_to()) {
        sink->add(text);
        if (text.empty()) sink->close();
    }
}

}  // namespace nexar::run

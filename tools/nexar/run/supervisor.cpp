#include "run/supervisor.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <optional>
#include <system_error>
#include <utility>

#include "base/try.hpp"
#include "run/caught_signals.hpp"
#include "run/keeper.hpp"
#include "run/policy.hpp"
#include "run/unit_streams.hpp"

namespace nexar::run {

namespace {

constexpr std::string_view kSignalWord = "signal ";
constexpr std::size_t kMaxTold = 4096;  // that waits to be understood

std::vector<std::string> names_of(const std::vector<Unit>& units) {
    std::vector<std::string> names;
    names.reserve(units.size());
    for (const Unit& unit : units) names.push_back(unit.name);
    return names;
}

class SupervisorLoop {
public:
    SupervisorLoop(const SupervisorOptions& options, CaughtSignals& signals, Keeper& keeper,
                   std::vector<UnitStreams>& streams)
        : options_(options),
          signals_(signals),
          keeper_(keeper),
          streams_(streams),
          policy_({.units = names_of(options.units), .grace = options.grace}),
          listens_(options.is_part) {}

    int run(const std::string& join) {
        for (std::size_t i = 0; i < streams_.size(); ++i) {
            if (!options_.units[i].is_rank()) streams_[i].input.add(options_.units[i].header(join));
        }
        while (!policy_.finished() && !keeper_.gone()) turn();
        // No process is left that could write more.
        for (UnitStreams& unit : streams_) {
            for (LineSource* source : {&unit.output, &unit.errors}) {
                OutputStream& to = source == &unit.output ? output_ : errors_;
                source->drain(to);
                if (source->is_open()) source->finish(to);
            }
        }
        if (!policy_.finished()) say("the process that keeps the ranks was killed; they are, too");
        while (output_.has_pending() || errors_.has_pending()) turn_to_end();
        return policy_.finished() ? policy_.exit_code() : 128 + SIGKILL;
    }

private:
    void turn() {
        polled_.clear();
        watch(signals_.descriptor(), POLLIN);
        watch(keeper_.descriptor(), POLLIN);
        if (listens_ || types()) watch(STDIN_FILENO, POLLIN);
        for (UnitStreams& unit : streams_) {
            if (unit.output.is_open() && !output_.is_full()) {
                watch(unit.output.descriptor(), POLLIN);
            }
            if (unit.errors.is_open() && !errors_.is_full()) {
                watch(unit.errors.descriptor(), POLLIN);
            }
            if (unit.input.has_pending()) watch(unit.input.descriptor(), POLLOUT);
        }
        watch_outputs();
        ::poll(polled_.data(), polled_.size(), timeout_ms());
        write_outputs();
        take_signals();
        take_input();
        move_streams();
        take_reports();
        policy_.on_time(clock_.now());
        if (output_.lost() || errors_.lost()) policy_.on_output_lost();
        obey_policy();
    }

    /// Only what was said is still to be written. Who waits for it may give up.
    void turn_to_end() {
        polled_.clear();
        watch(signals_.descriptor(), POLLIN);
        watch_outputs();
        ::poll(polled_.data(), polled_.size(), -1);
        write_outputs();
        while (const auto signal = signals_.take()) {
            if (*signal == SIGINT || *signal == SIGTERM) ::_exit(128 + *signal);
        }
    }

    void watch(int descriptor, short events) {
        polled_.push_back({.fd = descriptor, .events = events, .revents = 0});
    }

    bool is_ready(int descriptor) const {
        const auto found = std::ranges::find(polled_, descriptor, &pollfd::fd);
        return found != polled_.end() && found->revents != 0;
    }

    void watch_outputs() {
        if (output_.has_pending()) watch(output_.descriptor(), POLLOUT);
        if (errors_.has_pending()) watch(errors_.descriptor(), POLLOUT);
    }

    void write_outputs() {
        if (is_ready(output_.descriptor())) output_.write_some();
        if (is_ready(errors_.descriptor())) errors_.write_some();
    }

    int timeout_ms() const {
        const auto deadline = policy_.next_deadline();
        if (!deadline) return -1;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - clock_.now());
        return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
    }

    void take_signals() {
        while (const auto signal = signals_.take()) {
            policy_.on_signal(*signal);
            if (*signal != SIGTSTP) continue;
            obey_policy();
            ::raise(SIGSTOP);  // until SIGCONT, which comes next from the descriptor
        }
    }

    void take_reports() {
        while (const auto report = keeper_.take_report()) {
            if (report->kind == Report::Kind::alone) {
                policy_.on_alone();
                continue;
            }
            // Its last words come before what became of it.
            UnitStreams& unit = streams_.at(report->unit);
            unit.output.drain(output_);
            unit.errors.drain(errors_);
            if (report->kind == Report::Kind::ended) {
                policy_.on_ended(clock_.now(), report->unit, Ended::from_status(report->value));
            } else {
                policy_.on_not_started(
                    clock_.now(), report->unit,
                    fmt::format("{}: {}", options_.units[report->unit].command[0],
                                std::generic_category().message(report->value)));
            }
        }
    }

    void move_streams() {
        for (UnitStreams& unit : streams_) {
            if (!output_.is_full()) unit.output.read_some(output_);
            if (!errors_.is_full()) unit.errors.read_some(errors_);
            unit.input.write_some();
        }
    }

    void obey_policy() {
        for (const std::string& line : policy_.take_lines()) say(line);
        for (const Order& order : policy_.take_orders()) {
            keeper_.give(order);
            if (order.kind != Order::Kind::signal_units) continue;
            for (std::size_t i = 0; i < streams_.size(); ++i) {
                if (options_.units[i].is_rank()) continue;
                streams_[i].input.add(fmt::format("{}{}\n", kSignalWord, order.signal));
                streams_[i].input.write_some();
            }
        }
    }

    void say(std::string_view line) { errors_.add(fmt::format("nexar run: {}\n", line)); }

    /// The unit that gets what is typed into this terminal, while it is this job's.
    InputSink* typed_to() {
        for (std::size_t i = 0; i < streams_.size(); ++i) {
            if (options_.units[i].gets_input && streams_[i].input.is_open()) {
                return &streams_[i].input;
            }
        }
        return nullptr;
    }

    bool types() {
        const InputSink* const sink = typed_to();
        return sink != nullptr && !sink->has_pending() && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
    }

    void take_input() {
        if (!is_ready(STDIN_FILENO)) return;
        std::array<char, 4096> bytes;
        const ssize_t n = ::read(STDIN_FILENO, bytes.data(), bytes.size());
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
        const std::string_view text(bytes.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
        if (listens_) {
            take_told(text);
        } else if (InputSink* const sink = typed_to()) {
            sink->add(text);
            if (text.empty()) sink->close();
        }
    }

    /// What the launcher of the whole run says to this part; nothing: it is gone.
    void take_told(std::string_view text) {
        if (text.empty() || told_.size() > kMaxTold) {
            listens_ = false;
            policy_.on_abandoned();
            return;
        }
        told_ += text;
        for (std::size_t end = told_.find('\n'); end != std::string::npos; end = told_.find('\n')) {
            std::string_view line = std::string_view(told_).substr(0, end);
            int signal = 0;
            if (line.starts_with(kSignalWord)) {
                line.remove_prefix(kSignalWord.size());
                std::from_chars(line.data(), line.data() + line.size(), signal);
            }
            if (signal > 0 && signal <= SIGRTMAX) policy_.on_signal(signal);
            told_.erase(0, end + 1);
        }
    }

    const SupervisorOptions& options_;
    CaughtSignals& signals_;
    Keeper& keeper_;
    std::vector<UnitStreams>& streams_;
    SteadyClock clock_;
    Policy policy_;
    OutputStream output_{STDOUT_FILENO};
    OutputStream errors_{STDERR_FILENO};
    std::vector<pollfd> polled_;
    bool listens_;
    std::string told_;
};

}  // namespace

Result<int> supervise(const SupervisorOptions& options, const OpenJoin& open_join) {
    fill_standard_descriptors();
    NEXAR_TRY_VALUE(signals, CaughtSignals::make());
    const bool pumps = !options.is_part && ::isatty(STDIN_FILENO) != 0;
    KeeperPlan plan{.signal_mask = signals.mask_before()};
    std::vector<UnitStreams> streams;
    for (const Unit& unit : options.units) {
        NEXAR_TRY_VALUE(planned, plan_unit(unit, pumps));
        plan.units.push_back(std::move(planned.plan));
        for (const int descriptor :
             {planned.streams.output.descriptor(), planned.streams.errors.descriptor(),
              planned.streams.input.descriptor()}) {
            if (descriptor >= 0) plan.descriptors.push_back(descriptor);
        }
        streams.push_back(std::move(planned.streams));
    }
    NEXAR_TRY_VALUE(keeper, Keeper::start(plan));
    NEXAR_TRY_VALUE(join, open_join());
    NEXAR_TRY(keeper.start_units(join));
    return SupervisorLoop(options, signals, keeper, streams).run(join);
}

}  // namespace nexar::run

#include "run/survivors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/quantity.hpp"

namespace nexar::run {

namespace {

std::string processes(std::uint32_t number) {
    return number == 1 ? "1 process" : fmt::format("{} processes", number);
}

Duration pause_before(std::uint32_t restart) {
    Duration pause = Survivors::kFirstPause;
    for (std::uint32_t i = 0; i < restart && pause < Survivors::kLongestPause; ++i) pause *= 2;
    return std::min(pause, Survivors::kLongestPause);
}

}  // namespace

Survivors::Survivors(FailureOptions options, std::uint32_t slots)
    : options_(options), slots_(slots) {
    NEXAR_ASSERT(options_.min >= 1 && options_.min <= slots, "options are checked before");
}

std::string Survivors::name(std::uint32_t slot) const {
    const std::uint32_t restarts = slots_.at(slot).restarts;
    return restarts == 0 ? fmt::format("rank {}", slot)
                         : fmt::format("process {}.{}", slot, restarts);
}

std::uint32_t Survivors::running() const noexcept {
    return static_cast<std::uint32_t>(std::ranges::count(slots_, true, &Slot::running));
}

bool Survivors::may_restart(const Slot& slot) const noexcept {
    return options_.mode == OnFailure::restart && !stopped_ &&
           slot.restarts < options_.max_restarts;
}

Survivors::Verdict Survivors::on_failed(TimePoint now, std::uint32_t slot) {
    Slot& failed = slots_.at(slot);
    NEXAR_ASSERT(failed.running, "a process fails once");
    failed.running = false;
    const bool finished_without_it =
        failed.restarts > 0 && succeeded_ > failed.succeeded_before && succeeded_ >= options_.min;
    if (running() == 0 && finished_without_it) {
        stop_restarts();
        return {.goes_on = true, .text = ", but the other processes had finished before it"};
    }
    if (may_restart(failed)) {
        const Duration pause = pause_before(failed.restarts);
        failed.due = now + pause;
        return judge(fmt::format("; process {}.{} starts in {}", slot, failed.restarts + 1,
                                 format_duration(pause)));
    }
    const std::string used_up =
        options_.mode == OnFailure::restart && failed.restarts == options_.max_restarts
            ? fmt::format(" and is not restarted again (--max-restarts {})", failed.restarts)
            : "";
    const std::uint32_t others = running();
    return judge(used_up + (others == 1
                                ? std::string("; the other process continues")
                                : fmt::format("; the other {} processes continue", others)));
}

Survivors::Verdict Survivors::on_lost(std::uint32_t first, std::uint32_t count) {
    bool any = false;
    for (std::uint32_t i = first; i < first + count; ++i) {
        Slot& slot = slots_.at(i);
        any = any || slot.running || slot.due;
        slot.running = false;
        slot.due.reset();
    }
    if (!any) return {.goes_on = true};
    const std::uint32_t others = running();
    return judge(others == 1 ? std::string("; the other process continues")
                             : fmt::format("; the other {} processes continue", others));
}

/// Decides after a failure; `afterwards` describes how the run goes on.
Survivors::Verdict Survivors::judge(const std::string& afterwards) {
    if (running() == 0) {
        stop_restarts();
        return {};
    }
    const auto waiting = static_cast<std::uint32_t>(
        std::ranges::count_if(slots_, [](const Slot& slot) { return slot.due.has_value(); }));
    const std::uint32_t left = running() + waiting + succeeded_;
    if (left >= options_.min) return {.goes_on = true, .text = afterwards};
    stop_restarts();
    return {.text = fmt::format("; {} left, fewer than --min {}", processes(left), options_.min)};
}

std::optional<std::string> Survivors::on_succeeded(std::uint32_t slot) {
    Slot& ended = slots_.at(slot);
    NEXAR_ASSERT(ended.running, "a process ends once");
    ended.running = false;
    ++succeeded_;
    if (running() > 0) return std::nullopt;
    stop_restarts();
    if (succeeded_ >= options_.min) return std::nullopt;
    return fmt::format("only {} exited with code 0, fewer than --min {}", processes(succeeded_),
                       options_.min);
}

void Survivors::stop_restarts() noexcept {
    stopped_ = true;
    for (Slot& slot : slots_) slot.due.reset();
}

std::optional<TimePoint> Survivors::next_deadline() const noexcept {
    std::optional<TimePoint> next;
    for (const Slot& slot : slots_) {
        if (slot.due && (!next || *slot.due < *next)) next = slot.due;
    }
    return next;
}

std::vector<Survivors::Restart> Survivors::take_due(TimePoint now) {
    std::vector<Restart> due;
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
        Slot& slot = slots_[i];
        if (!slot.due || now < *slot.due) continue;
        slot.due.reset();
        slot.running = true;
        slot.succeeded_before = succeeded_;
        due.push_back({.slot = i, .number = ++slot.restarts});
    }
    return due;
}

bool Survivors::settled() const noexcept {
    return std::ranges::none_of(slots_, [](const Slot& slot) { return slot.running || slot.due; });
}

}  // namespace nexar::run

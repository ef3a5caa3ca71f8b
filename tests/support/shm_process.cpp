#include "support/shm_process.hpp"

#include <poll.h>

#include <algorithm>
#include <string>
#include <utility>

namespace nexar::testing {

namespace {
constexpr Duration kSetupTimeout = std::chrono::seconds(5);
}  // namespace

ShmProcess::ShmProcess(const shm::LinkOptions& options, OnEvent on_event)
    : on_event_(std::move(on_event)), carrier_(std::move(*shm::Carrier::open(options))) {}

bool ShmProcess::invite(const Channel& channel) {
    const auto invitation = carrier_->invite(now(), Identity{});
    if (!invitation) return false;
    id_ = invitation->link;
    channel.say(
        {reinterpret_cast<const char*>(invitation->bytes.data()), invitation->bytes.size()});
    return come_up();
}

bool ShmProcess::accept(const Channel& channel) {
    const auto invitation = channel.hear(kSetupTimeout);
    if (!invitation) return false;
    const auto link = carrier_->accept(
        now(), Identity{}, std::as_bytes(std::span(invitation->data(), invitation->size())));
    if (!link) return false;
    id_ = *link;
    return come_up();
}

bool ShmProcess::come_up() {
    down_.reset();
    link_ = nullptr;
    sleep_until([&] { return link_ != nullptr || down_; }, kSetupTimeout);
    return link_ != nullptr;
}

bool ShmProcess::turn() {
    const TimePoint now = clock_.now();
    const bool arrived = carrier_->on_ready(now);
    carrier_->flush(now);
    bool events = false;
    while (auto event = carrier_->poll_event()) {
        events = true;
        if (event->link != id_) {  // an invitation that nobody accepted
            if (std::holds_alternative<port::Down>(event->what)) carrier_->forget(event->link);
            continue;
        }
        if (auto* up = std::get_if<port::Up>(&event->what)) link_ = up->link;
        if (on_event_) on_event_(*event);
        if (auto* down = std::get_if<port::Down>(&event->what)) down_ = std::move(*down);
    }
    if (events) carrier_->flush(now);
    return arrived;
}

bool ShmProcess::spin_until(const std::function<bool()>& done, Duration within) {
    const TimePoint until = now() + within;
    while (!done()) {
        turn();
        if (now() >= until) return false;
    }
    return true;
}

bool ShmProcess::sleep_until(const std::function<bool()>& done, Duration within) {
    const TimePoint until = now() + within;
    while (true) {
        turn();
        if (done()) return true;
        const TimePoint here = now();
        if (here >= until) return false;
        const TimePoint due = std::min(until, carrier_->next_deadline().value_or(until));
        if (due <= here || !carrier_->fall_asleep()) continue;
        pollfd descriptor{.fd = carrier_->descriptor(), .events = POLLIN, .revents = 0};
        const auto ms = std::chrono::ceil<std::chrono::milliseconds>(due - here).count();
        ::poll(&descriptor, 1, static_cast<int>(ms));
        carrier_->wake_up();
    }
}

void ShmProcess::forget() {
    carrier_->forget(id_);
    link_ = nullptr;
    down_.reset();
}

}  // namespace nexar::testing

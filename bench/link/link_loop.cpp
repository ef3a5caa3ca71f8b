#include "link_loop.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <nexar/error.hpp>
#include <utility>

#include "control.hpp"
#include "timing.hpp"

namespace nexar::bench {

LinkLoop::LinkLoop(port::Carrier& carrier, Waiting waiting, TakeEvent take)
    : carrier_(&carrier), waiting_(waiting), take_(std::move(take)) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) fail_system("create an epoll instance");
}

LinkLoop::~LinkLoop() {
    ::close(epoll_);
}

void LinkLoop::watch() {
    const std::uint32_t wanted = EPOLLIN | (carrier_->wants_write() ? EPOLLOUT : 0U);
    if (wanted == watched_) return;
    epoll_event event{.events = wanted, .data = {}};
    const int action = watched_ == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(epoll_, action, carrier_->descriptor(), &event) != 0) {
        fail_system("watch the carrier's socket");
    }
    watched_ = wanted;
}

void LinkLoop::wait(TimePoint until) {
    if (waiting_ == Waiting::spinning) return;
    if (const auto deadline = carrier_->next_deadline()) until = std::min(until, *deadline);
    if (until == TimePoint{}) return;
    const Duration left = until - clock_.now();
    if (left <= Duration::zero()) return;
    watch();
    const auto whole = std::chrono::floor<std::chrono::seconds>(left);
    const timespec limit{.tv_sec = whole.count(), .tv_nsec = (left - whole).count()};
    epoll_event event{};
    if (epoll_pwait2(epoll_, &event, 1, &limit, nullptr) < 0 && errno != EINTR) {
        fail_system("wait for the carrier's socket");
    }
}

void LinkLoop::turn(TimePoint until) {
    wait(until);
    const TimePoint now = clock_.now();
    carrier_->on_ready(now);
    carrier_->flush(now);
    bool any = false;
    while (const auto event = carrier_->poll_event()) {
        any = true;
        take_(*event);
    }
    if (any) carrier_->flush(now);
}

void LinkLoop::run(const std::function<bool()>& done, std::string_view doing) {
    const TimePoint end = now() + kPatience;
    while (!done()) {
        turn(end);
        if (now() >= end && !done()) {
            throw Error(Errc::timed_out,
                        fmt::format("{} took longer than {} s", doing, in_seconds(kPatience)));
        }
    }
}

}  // namespace nexar::bench

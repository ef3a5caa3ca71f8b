#include "runtime/progress_poller.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/assert.hpp"
#include "base/try.hpp"

namespace nexar::runtime {

namespace {

Error cannot(const char* doing) {
    return {
        Errc::bad_config,
        fmt::format("cannot {} for the progress loop: {}; nexar needs Linux 5.11 or newer and a "
                    "few free descriptors (ulimit -n)",
                    doing, std::strerror(errno))};  // NOLINT(concurrency-mt-unsafe)
}

timespec relative(Duration left) noexcept {
    const auto some = std::max(left, Duration::zero());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(some);
    return {.tv_sec = seconds.count(), .tv_nsec = (some - seconds).count()};
}

Result<Descriptor> make_set() {
    Descriptor set(::epoll_create1(EPOLL_CLOEXEC));
    if (set.number() < 0) return cannot("create an epoll set");
    return set;
}

int add(const Descriptor& set, int descriptor) noexcept {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    return ::epoll_ctl(set.number(), EPOLL_CTL_ADD, descriptor, &event);
}

// The descriptors that became ready; empty after the deadline or a signal.
std::span<const epoll_event> sleep_on(const Descriptor& set, std::span<epoll_event> events,
                                      std::optional<TimePoint> deadline) noexcept {
    timespec left{};
    if (deadline) left = relative(*deadline - SteadyClock{}.now());
    const int count = ::epoll_pwait2(set.number(), events.data(), static_cast<int>(events.size()),
                                     deadline ? &left : nullptr, nullptr);
    NEXAR_ASSERT(count >= 0 || errno == EINTR, "epoll_pwait2 fails only with EINTR");
    return events.first(static_cast<std::size_t>(std::max(count, 0)));
}

bool holds(std::span<const epoll_event> events, int descriptor) noexcept {
    return std::ranges::any_of(events,
                               [&](const epoll_event& e) { return e.data.fd == descriptor; });
}

}  // namespace

Poller::Poller(Descriptor inner, Descriptor outer, Waker waker, Waker summons) noexcept
    : inner_(std::move(inner)),
      outer_(std::move(outer)),
      waker_(std::move(waker)),
      summons_(std::move(summons)) {}

Result<Poller> Poller::make() {
    NEXAR_TRY_VALUE(inner, make_set());
    NEXAR_TRY_VALUE(outer, make_set());
    NEXAR_TRY_VALUE(waker, Waker::make());
    NEXAR_TRY_VALUE(summons, Waker::make());
    const bool added = add(inner, waker.descriptor()) == 0 &&
                       add(outer, summons.descriptor()) == 0 && add(outer, inner.number()) == 0;
    if (!added) return cannot("add to an epoll set");
    epoll_event event{};
    const timespec no_time{};
    if (::epoll_pwait2(inner.number(), &event, 1, &no_time, nullptr) < 0 && errno != EINTR) {
        return cannot("call epoll_pwait2");
    }
    return Poller(std::move(inner), std::move(outer), std::move(waker), std::move(summons));
}

Result<void> Poller::watch(std::span<port::Carrier* const> carriers) {
    for (std::size_t i = 0; i < carriers.size(); ++i) {
        if (auto watched = watch_one(*carriers[i]); !watched) {
            unwatch(carriers.first(i));
            return watched;
        }
    }
    return {};
}

Result<void> Poller::watch_one(port::Carrier& carrier) {
    const int descriptor = carrier.descriptor();
    if (descriptor < 0) return {};
    watched_.push_back({.carrier = &carrier, .descriptor = descriptor});
    if (add(inner_, descriptor) != 0) {
        watched_.pop_back();
        return cannot("watch the descriptor of a carrier");
    }
    return {};
}

void Poller::unwatch(std::span<port::Carrier* const> carriers) noexcept {
    std::erase_if(watched_, [&](const Watched& one) {
        if (std::ranges::find(carriers, one.carrier) == carriers.end()) return false;
        ::epoll_ctl(inner_.number(), EPOLL_CTL_DEL, one.descriptor, nullptr);
        return true;
    });
}

void Poller::follow_writers() noexcept {
    for (Watched& one : watched_) {
        const bool wanted = one.carrier->wants_write();
        if (wanted == one.writable) continue;
        epoll_event event{};
        event.events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN;
        event.data.fd = one.descriptor;
        const int changed = ::epoll_ctl(inner_.number(), EPOLL_CTL_MOD, one.descriptor, &event);
        NEXAR_ASSERT(changed == 0, "a watched carrier must keep its descriptor");
        one.writable = wanted;
    }
}

void Poller::sleep_driving(std::optional<TimePoint> deadline) const noexcept {
    std::array<epoll_event, 8> events;
    if (holds(sleep_on(inner_, events, deadline), waker_.descriptor())) waker_.drain();
}

void Poller::sleep_outside(std::optional<TimePoint> deadline) const noexcept {
    std::array<epoll_event, 2> events;
    if (holds(sleep_on(outer_, events, deadline), summons_.descriptor())) summons_.drain();
}

void Poller::await_summons(std::optional<Duration> at_most) const noexcept {
    pollfd entry{.fd = summons_.descriptor(), .events = POLLIN, .revents = 0};
    timespec left{};
    if (at_most) left = relative(*at_most);
    if (::ppoll(&entry, 1, at_most ? &left : nullptr, nullptr) > 0) summons_.drain();
}

}  // namespace nexar::runtime

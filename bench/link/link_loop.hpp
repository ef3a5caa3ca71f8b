#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/time.hpp"
#include "contender.hpp"
#include "port/link.hpp"

namespace nexar::bench {

/// Drives one carrier, as the contract of port::Carrier says. One thread.
class LinkLoop {
public:
    using TakeEvent = std::function<void(const port::LinkEvent&)>;

    /// `carrier` must outlive it. Every event goes to `take`, which may call Link and forget().
    LinkLoop(port::Carrier& carrier, Waiting waiting, TakeEvent take);
    ~LinkLoop();
    LinkLoop(const LinkLoop&) = delete;
    LinkLoop& operator=(const LinkLoop&) = delete;

    TimePoint now() const noexcept { return clock_.now(); }

    /// One round. A sleeping loop waits first, until the carrier has something to do and not longer
    /// than `until`, to the nanosecond.
    void turn(TimePoint until);

    /// Sends what was enqueued since the last round, without looking for arrivals first.
    void flush() { carrier_->flush(clock_.now()); }

    /// Rounds until `done`. Throws Errc::timed_out, saying `doing`, after kPatience.
    void run(const std::function<bool()>& done, std::string_view doing);

private:
    void wait(TimePoint until);
    void watch();

    port::Carrier* carrier_;
    Waiting waiting_;
    TakeEvent take_;
    SteadyClock clock_;
    int epoll_ = -1;
    std::uint32_t watched_ = 0;  // the events that epoll looks for
};

}  // namespace nexar::bench

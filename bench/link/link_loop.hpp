#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/time.hpp"
#include "contender.hpp"
#include "port/link.hpp"

namespace nexar::bench {

/// Drives one carrier according to the contract of port::Carrier. Single-threaded.
class LinkLoop {
public:
    using TakeEvent = std::function<void(const port::LinkEvent&)>;

    /// `carrier` must outlive it. Every event goes to `take`, which may call Link and forget().
    LinkLoop(port::Carrier& carrier, Waiting waiting, TakeEvent take);
    ~LinkLoop();
    LinkLoop(const LinkLoop&) = delete;
    LinkLoop& operator=(const LinkLoop&) = delete;

    TimePoint now() const noexcept { return clock_.now(); }

    /// One round. A sleeping loop first waits until the carrier has something to do, but not longer
    /// than `until`, with nanosecond precision.
    void turn(TimePoint until);

    /// Sends what was enqueued since the last round, without checking for arrivals first.
    void flush() { carrier_->flush(clock_.now()); }

    /// Runs rounds until `done`. After kPatience throws Errc::timed_out with a message that names
    /// `doing`.
    void run(const std::function<bool()>& done, std::string_view doing);

private:
    void wait(TimePoint until);
    void watch();

    port::Carrier* carrier_;
    Waiting waiting_;
    TakeEvent take_;
    SteadyClock clock_;
    int epoll_ = -1;
    std::uint32_t watched_ = 0;  // the events registered with epoll
};

}  // namespace nexar::bench

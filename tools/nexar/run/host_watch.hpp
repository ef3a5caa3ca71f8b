#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "run/ended.hpp"

namespace nexar::run {

/// The launcher's knowledge about the part of its run on another host: whether it has started, when
/// it was last heard from, and what the end of its ssh process means. Pure.
class HostWatch {
public:
    /// How long a host may take to send its first message: ssh must connect and log in, and the
    /// host must start nexar. Normally longer than any ConnectTimeout that users set.
    static constexpr Duration kStartTime = std::chrono::seconds(60);

    struct Options {
        std::string unit{};          // "host b (ranks 2 to 3)"
        std::string remote_nexar{};  // the command that ssh runs there
        Duration timeout{};          // after this much silence the connection counts as lost
    };

    HostWatch(Options options, TimePoint now);

    void on_heard(TimePoint now) noexcept { heard_ = now; }
    /// The part itself has sent a message.
    void on_started(TimePoint now) noexcept;
    void on_finished() noexcept { finished_ = true; }
    bool finished() const noexcept { return finished_; }

    /// When the host counts as lost, unless a message from it arrives earlier.
    TimePoint deadline() const noexcept;
    /// The error to report at the deadline.
    std::string why_lost() const;

    /// What the end of the ssh process means: one clause without a full stop.
    std::string explain(const Ended& ended) const;

private:
    Options options_;
    TimePoint heard_;
    bool started_ = false;
    bool finished_ = false;
};

/// The longest acceptable silence; shorter than `timeout`, so that the launcher notices a broken
/// connection before `timeout`.
constexpr Duration longest_silence(Duration timeout) noexcept {
    return timeout * 4 / 5;
}

/// The interval between heartbeats.
constexpr Duration beat_of(Duration timeout) noexcept {
    return timeout / 5;
}

}  // namespace nexar::run

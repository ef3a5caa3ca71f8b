#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "run/ended.hpp"

namespace nexar::run {

/// What the launcher knows of the part of its run on another host: whether it has started, when it
/// was heard last, and what the end of its ssh means. Pure.
class HostWatch {
public:
    /// How long a host may take until it says its first word: for ssh to connect and to log in, and
    /// for the host to start nexar. Longer than any ConnectTimeout that users set, as a rule.
    static constexpr Duration kStartTime = std::chrono::seconds(60);

    struct Options {
        std::string unit{};          // "host b (ranks 2 to 3)"
        std::string remote_nexar{};  // the command that ssh runs there
        Duration timeout{};          // after this much silence the connection counts as lost
    };

    HostWatch(Options options, TimePoint now);

    void on_heard(TimePoint now) noexcept { heard_ = now; }
    /// The part itself has spoken.
    void on_started(TimePoint now) noexcept;
    void on_finished() noexcept { finished_ = true; }
    bool finished() const noexcept { return finished_; }

    /// When the host counts as lost unless it is heard before.
    TimePoint deadline() const noexcept;
    /// What to say then.
    std::string why_lost() const;

    /// What the end of ssh means: one sentence without a full stop.
    std::string explain(const Ended& ended) const;

private:
    Options options_;
    TimePoint heard_;
    bool started_ = false;
    bool finished_ = false;
};

/// The longest silence that is still in order: an end that is cut off is noticed before `timeout`.
constexpr Duration longest_silence(Duration timeout) noexcept {
    return timeout * 4 / 5;
}

/// How often an end says that it is there.
constexpr Duration beat_of(Duration timeout) noexcept {
    return timeout / 5;
}

}  // namespace nexar::run

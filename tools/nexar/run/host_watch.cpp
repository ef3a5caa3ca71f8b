#include "run/host_watch.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/quantity.hpp"

namespace nexar::run {

namespace {

constexpr int kSshFailed = 255;      // ssh(1): "or with 255 if an error occurred"
constexpr int kNotFound = 127;       // from the shell on the other host
constexpr int kNotExecutable = 126;  // from the shell on the other host

}  // namespace

HostWatch::HostWatch(Options options, TimePoint now) : options_(std::move(options)), heard_(now) {}

void HostWatch::on_started(TimePoint now) noexcept {
    started_ = true;
    heard_ = now;
}

TimePoint HostWatch::deadline() const noexcept {
    return heard_ + (started_ ? longest_silence(options_.timeout) : kStartTime);
}

std::string HostWatch::why_lost() const {
    if (!started_) {
        return fmt::format("{} did not start its ranks within {}", options_.unit,
                           format_duration(kStartTime));
    }
    return fmt::format("the connection to {} is lost: it has been silent for {}", options_.unit,
                       format_duration(longest_silence(options_.timeout)));
}

std::string HostWatch::explain(const Ended& ended) const {
    if (finished_) return fmt::format("{} {}", options_.unit, to_text(ended));
    if (ended.by_signal)
        return fmt::format("the ssh process for {} {}", options_.unit, to_text(ended));
    if (started_) {
        return ended.number == kSshFailed
                   ? fmt::format("ssh lost the connection to {}", options_.unit)
                   : fmt::format("{} {} without reporting its end", options_.unit, to_text(ended));
    }
    if (ended.number == kSshFailed) {
        return fmt::format("ssh could not connect or log in to {}", options_.unit);
    }
    if (ended.number == kNotFound || ended.number == kNotExecutable) {
        return fmt::format(
            "{} cannot run the command `{}`: install nexar there, or give its path "
            "with --remote-nexar",
            options_.unit, options_.remote_nexar);
    }
    return fmt::format("{} {} before it started a rank", options_.unit, to_text(ended));
}

}  // namespace nexar::run

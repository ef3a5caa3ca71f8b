#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace nexar::run {

/// What a part of a run hears from its launcher, on standard input. The launcher counts as gone
/// when the input ends, or when nothing has come for `timeout`: a connection that is cut breaks
/// without a sign on this side. Pure.
class LauncherLine {
public:
    LauncherLine(Duration timeout, TimePoint now) noexcept : timeout_(timeout), heard_(now) {}

    /// Bytes that were read; none at the end of the input. Returns the signals to pass on.
    std::vector<int> take(TimePoint now, std::string_view bytes);

    bool is_open() const noexcept { return open_; }
    /// Nothing that comes later counts.
    void hang_up() noexcept { open_ = false; }
    bool lost(TimePoint now) const noexcept;
    /// When lost() is to be asked again.
    std::optional<TimePoint> deadline() const noexcept;

private:
    static constexpr std::size_t kMostPending = 4096;

    Duration timeout_;
    TimePoint heard_;
    bool open_ = true;
    bool stopped_ = false;  // with its ranks, by SIGTSTP: it says nothing until it goes on
    std::string pending_{};
};

}  // namespace nexar::run

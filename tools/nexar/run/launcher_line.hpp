#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "run/part_messages.hpp"

namespace nexar::run {

/// Parses what a launcher sends to a part of its run, on standard input. The launcher counts as
/// gone when the input ends, or after `timeout` without a byte: this side does not notice a cut
/// connection. Pure.
class LauncherLine {
public:
    LauncherLine(Duration timeout, TimePoint now) noexcept : timeout_(timeout), heard_(now) {}

    /// Takes the bytes read; empty at the end of the input. Returns the orders in them.
    std::vector<ToPart> take(TimePoint now, std::string_view bytes);

    bool is_open() const noexcept { return open_; }
    /// Ignores all further input.
    void hang_up() noexcept { open_ = false; }
    bool lost(TimePoint now) const noexcept;
    /// When to call lost() again.
    std::optional<TimePoint> deadline() const noexcept;

private:
    static constexpr std::size_t kMostPending = 4096;

    Duration timeout_;
    TimePoint heard_;
    bool open_ = true;
    bool stopped_ = false;  // the launcher, by SIGTSTP: it is silent until it continues
    std::string pending_{};
};

}  // namespace nexar::run

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "run/ended.hpp"

namespace nexar::run {

/// Reports ranks that exit with code 0 while others keep running. A rank that communicates with
/// such a rank fails or waits, and nothing else would explain why.
///
/// The ranks of a program usually end at almost the same time, so a line appears only after the
/// notice period, or at once when another rank fails. The period doubles with each line, for
/// programs whose ranks end one after the other. Pure: takes events and the time, returns lines.
class EarlyEnds {
public:
    static constexpr Duration kNotice = std::chrono::seconds(2);
    static constexpr Duration kLongestNotice = std::chrono::seconds(64);

    explicit EarlyEnds(std::uint32_t world) : running_(world, true) {}

    void on_ended(TimePoint now, std::uint32_t rank, const Ended& ended);
    /// The run is ending. If it failed, perhaps because of an early exit, reports the exits not yet
    /// reported. No line follows after that.
    void on_run_ending(bool failed);
    void on_time(TimePoint now);

    std::optional<TimePoint> next_deadline() const noexcept { return due_; }
    std::vector<std::string> take_lines();

private:
    std::vector<bool> running_;
    std::vector<std::uint32_t> ended_;  // with code 0, not reported yet
    Duration notice_ = kNotice;
    std::optional<TimePoint> due_{};
    bool failed_ = false;  // a rank has failed
    bool over_ = false;
    std::vector<std::string> lines_;
};

}  // namespace nexar::run

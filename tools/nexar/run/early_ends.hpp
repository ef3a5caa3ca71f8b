#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "run/ended.hpp"

namespace nexar::run {

/// Reports ranks that exit with code 0 while others keep running. Whoever communicates with such a
/// rank fails or waits, and nothing else says why.
///
/// The ranks of a program end within a moment of each other, so a line comes only after `notice`,
/// or at once when another rank fails. In a program whose ranks end one after the other, the notice
/// doubles with each line. Pure: events and the time come in, lines go out.
class EarlyEnds {
public:
    static constexpr Duration kNotice = std::chrono::seconds(2);
    static constexpr Duration kLongestNotice = std::chrono::seconds(64);

    explicit EarlyEnds(std::uint32_t world) : running_(world, true) {}

    void on_ended(TimePoint now, std::uint32_t rank, const Ended& ended);
    /// The run ends anyway. After a failure, which an early end may have caused, this says what has
    /// not been said yet; then nothing more.
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

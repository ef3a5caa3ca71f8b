#include "run/early_ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "run/rank_list.hpp"

namespace nexar::run {

void EarlyEnds::on_ended(TimePoint now, std::uint32_t rank, const Ended& ended) {
    if (rank >= running_.size() || !running_[rank]) return;
    running_[rank] = false;
    if (over_ || failed_) return;  // a rank that ends after a failure did not cause it
    failed_ = ended.failed();
    if (failed_) return;
    ended_.insert(std::ranges::lower_bound(ended_, rank), rank);
    if (!due_) due_ = now + notice_;
    if (std::ranges::find(running_, true) == running_.end()) {
        ended_.clear();
        due_.reset();
    }
}

void EarlyEnds::on_run_ending(bool failed) {
    if (std::exchange(over_, true)) return;
    due_.reset();
    if (!failed || ended_.empty()) return;
    lines_.push_back(fmt::format("{} had exited with code 0 before that", rank_list(ended_)));
}

void EarlyEnds::on_time(TimePoint now) {
    if (!due_ || now < *due_) return;
    due_.reset();
    notice_ = std::min(2 * notice_, kLongestNotice);
    std::vector<std::uint32_t> others;
    for (std::uint32_t rank = 0; rank < running_.size(); ++rank) {
        if (running_[rank]) others.push_back(rank);
    }
    lines_.push_back(fmt::format("{} exited with code 0 while {} {} still running",
                                 rank_list(ended_), rank_list(others),
                                 others.size() == 1 ? "is" : "are"));
    ended_.clear();
}

std::vector<std::string> EarlyEnds::take_lines() {
    return std::exchange(lines_, {});
}

}  // namespace nexar::run

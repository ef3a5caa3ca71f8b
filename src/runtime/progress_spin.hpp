#pragma once

#include <thread>

#include "runtime/progress.hpp"

namespace nexar::runtime {

/// How long a driver goes on although nothing happens: for some microseconds in a tight loop, since
/// an answer that is on its way comes sooner than a thread wakes; then a few times after it offered
/// the processor to others. On a machine with more drivers than cores these are who it waits for:
/// there it offers it at once.
class Progress::Spin {
public:
    Spin(Duration spin, Crowd& crowd) noexcept : spin_(spin), crowd_(&crowd) {}

    /// After a turn at `now`. False: sleep; and sleep again if that ends for nothing.
    bool goes_on(bool active, TimePoint now) noexcept {
        if (active || !began_) {
            began_ = true;
            until_ = now + spin_;
            yields_ = 0;
            return true;
        }
        if (!crowd_->here() && now < until_) return true;
        if (yields_ == kMostYields) return false;
        ++yields_;
        std::this_thread::yield();
        crowd_->saw_away(SteadyClock{}.now() - now);
        return true;
    }

private:
    static constexpr int kMostYields = 4;

    Duration spin_;
    Crowd* crowd_;
    TimePoint until_{};
    bool began_ = false;
    int yields_ = 0;
};

}  // namespace nexar::runtime

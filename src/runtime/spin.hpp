#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/time.hpp"

namespace nexar::runtime {

/// Detects whether other threads compete for the processor that a driver spins on: recently, more
/// than one in four yields let another thread run.
class Crowd {
public:
    /// Any thread may call.
    bool here() const noexcept { return level_.load(std::memory_order_relaxed) > kMost / 2; }

    /// Records that a yield took this time, and returns whether another thread ran. Only for the
    /// holder of the baton.
    bool saw_away(Duration time) noexcept {
        const int level = level_.load(std::memory_order_relaxed);
        const bool taken = time > kTaken;
        level_.store(taken ? std::min(level + 3, kMost) : std::max(level - 1, 0),
                     std::memory_order_relaxed);
        return taken;
    }

private:
    static constexpr Duration kTaken = std::chrono::microseconds(3);
    static constexpr int kMost = 32;

    std::atomic<int> level_ = 0;
};

/// Decides what a driver does while nothing happens. It polls in a tight loop for some
/// microseconds, because a response that is in flight arrives sooner than a thread wakes; then it
/// yields the processor. With more drivers than cores, the driver waits for the very threads that
/// it competes with, so it yields at once, and repeats that while other threads run. It does so
/// only for a short time, because a thread that computes keeps the processor until the kernel takes
/// it away; but it lets in a thread that wakes.
class Spin {
public:
    enum class Next : std::uint8_t { look, offer, sleep };

    Spin(Duration spin, Crowd& crowd) noexcept : spin_(spin), crowd_(&crowd) {}

    /// Call after a turn at `now`. After Next::sleep, a driver that wakes for nothing sleeps again.
    Next next(bool active, TimePoint now) noexcept {
        if (active || !began_) {
            began_ = true;
            until_ = now + spin_;
            refused_ = 0;
            away_ = Duration::zero();
            return Next::look;
        }
        if (!crowd_->here() && now < until_) return Next::look;
        return refused_ == kMostRefused || away_ > kMostAway ? Next::sleep : Next::offer;
    }

    /// Records that a yield took this time.
    void offered(Duration time) noexcept {
        away_ += time;
        if (!crowd_->saw_away(time)) ++refused_;
    }

private:
    static constexpr int kMostRefused = 4;
    static constexpr Duration kMostAway = std::chrono::milliseconds(1);

    Duration spin_;
    Crowd* crowd_;
    TimePoint until_{};
    Duration away_{};
    bool began_ = false;
    int refused_ = 0;
};

}  // namespace nexar::runtime

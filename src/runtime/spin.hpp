#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/time.hpp"

namespace nexar::runtime {

/// Whether others want the processor that a driver spins on: more than one in four of the times
/// that it was offered to them lately, they took it.
class Crowd {
public:
    /// Any thread may ask.
    bool here() const noexcept { return level_.load(std::memory_order_relaxed) > kMost / 2; }

    /// An offer was over after this time. Whether it was taken. Only whoever has the baton.
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

/// What a driver does while nothing happens: goes on for some microseconds in a tight loop, since
/// an answer that is on its way comes sooner than a thread wakes; then offers the processor to
/// others. On a machine with more drivers than cores these are who it waits for: there it offers it
/// at once, and again while it is taken; not for long, since who computes does not give it back
/// before the kernel takes it, but a thread that wakes is let in.
class Spin {
public:
    enum class Next : std::uint8_t { look, offer, sleep };

    Spin(Duration spin, Crowd& crowd) noexcept : spin_(spin), crowd_(&crowd) {}

    /// After a turn at `now`. sleep: and sleep again if that ends for nothing.
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

    /// The offer was over after this time.
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

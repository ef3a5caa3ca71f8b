#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <nexar/node.hpp>

#include "base/time.hpp"

namespace nexar::runtime {

/// Detects whether other threads compete for the processor that a driver spins on: either the ranks
/// of this host outnumber the processors, or, recently, more than one in four yields let another
/// thread run.
class Crowd {
public:
    /// Any thread may call.
    bool here() const noexcept {
        return outnumbered_.load(std::memory_order_relaxed) ||
               level_.load(std::memory_order_relaxed) > kMost / 2;
    }

    /// Any thread may call.
    void set_outnumbered(bool outnumbered) noexcept {
        outnumbered_.store(outnumbered, std::memory_order_relaxed);
    }

    /// Records that a yield took this time, and returns whether another thread ran. Only for the
    /// holder of the baton.
    bool saw_away(Duration time) noexcept {
        fastest_ = std::min(fastest_, std::max(time, kFastest));
        const int level = level_.load(std::memory_order_relaxed);
        const bool taken = time > 3 * fastest_;
        level_.store(taken ? std::min(level + 3, kMost) : std::max(level - 1, 0),
                     std::memory_order_relaxed);
        return taken;
    }

private:
    // A yield that lets no other thread run takes 0.2 to 1 us, depending on the machine; one that
    // does takes two switches more. The fastest tells them apart.
    static constexpr Duration kFastest = std::chrono::nanoseconds(200);
    static constexpr int kMost = 32;

    std::atomic<bool> outnumbered_ = false;
    std::atomic<int> level_ = 0;
    Duration fastest_ = std::chrono::microseconds(1);  // for the holder of the baton
};

/// Decides what a driver does while nothing happens. It polls in a tight loop for some time,
/// because a response that is in flight, or that the peer is about to compute, arrives sooner than
/// a thread wakes. Now and then it yields the processor, to learn whether another thread needs it;
/// then it sleeps. With more drivers than cores, the driver waits for the very threads that it
/// competes with, so it yields all the time, which lets in a thread that wakes. After 100 us it
/// repeats that only while other threads run, and only for a short time, because a thread that
/// computes keeps the processor until the kernel takes it away.
class Spin {
public:
    enum class Next : std::uint8_t { look, offer, sleep };

    Spin(Duration budget, Crowd& crowd, Waiting waiting = Waiting::automatic) noexcept
        : budget_(budget), crowd_(&crowd), waiting_(waiting) {}

    /// Before the first turn, so that already this one may look repeatedly.
    void begin(TimePoint now) noexcept {
        if (waiting_ == Waiting::sleep) return;
        began_ = true;
        until_ = waiting_ == Waiting::spin ? TimePoint::max() : now + budget_;
        yield_until_ = now + std::min(budget_, kYieldTime);
        offer_at_ = now + kOfferEvery;
        refused_ = 0;
        away_ = Duration::zero();
    }

    /// Call after a turn at `now`. After Next::sleep, a driver that wakes for nothing sleeps again.
    Next next(bool active, TimePoint now) noexcept {
        if (waiting_ == Waiting::sleep) return active ? Next::look : Next::sleep;
        if (active || !began_) {
            begin(now);
            return Next::look;
        }
        if (now < look_until()) return Next::look;
        if (waiting_ == Waiting::spin || spins(now)) return Next::offer;
        if (now < yield_until_ && away_ <= kMostAway) return Next::offer;
        return refused_ == kMostRefused || away_ > kMostAway ? Next::sleep : Next::offer;
    }

    /// Until then, next() answers `look` if nothing happens.
    TimePoint look_until() const noexcept {
        return crowd_->here() ? TimePoint::min() : std::min(until_, offer_at_);
    }

    /// Records that a yield at `now` took this time.
    void offered(TimePoint now, Duration time) noexcept {
        away_ += time;
        if (crowd_->saw_away(time)) return;
        if (spins(now) || now < yield_until_) {
            offer_at_ = now + time + kOfferEvery;
        } else {
            refused_ = std::min(refused_ + 1, kMostRefused);
        }
    }

private:
    static constexpr int kMostRefused = 4;
    static constexpr Duration kMostAway = std::chrono::milliseconds(1);
    static constexpr Duration kYieldTime = std::chrono::microseconds(100);
    static constexpr Duration kOfferEvery = std::chrono::microseconds(20);

    bool spins(TimePoint now) const noexcept { return now < until_ && !crowd_->here(); }

    Duration budget_;
    Crowd* crowd_;
    Waiting waiting_;
    TimePoint until_ = TimePoint::min();        // the end of the budget
    TimePoint yield_until_ = TimePoint::min();  // in a crowd
    TimePoint offer_at_ = TimePoint::min();
    Duration away_{};
    bool began_ = false;
    int refused_ = 0;
};

}  // namespace nexar::runtime

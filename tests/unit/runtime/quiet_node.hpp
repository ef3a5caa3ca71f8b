#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "port/link.hpp"
#include "runtime/progress.hpp"
#include "runtime/waker.hpp"
#include "support/linkless_carrier.hpp"

namespace nexar::runtime {

/// A carrier like that of shared memory: an arrival makes the descriptor readable only if the
/// carrier sleeps.
class QuietCarrier final : public LinklessCarrier {
public:
    /// Any thread may call. The order of the two operations, here and in fall_asleep(), is that of
    /// the argument in Progress::lull().
    void arrive() noexcept {
        arrived_.fetch_add(1, std::memory_order_seq_cst);
        if (!asleep_.load(std::memory_order_seq_cst)) return;
        signals_.fetch_add(1, std::memory_order_relaxed);
        waker_.signal();
    }
    std::uint64_t signals() const noexcept { return signals_.load(std::memory_order_relaxed); }
    bool asleep() const noexcept { return asleep_.load(std::memory_order_relaxed); }

    // The rest is for the driver.
    std::uint64_t arrived() noexcept {
        seen_ = arrived_.load(std::memory_order_acquire);
        return seen_;
    }
    int descriptor() const noexcept override { return waker_.descriptor(); }
    bool fall_asleep() noexcept override {
        EXPECT_FALSE(asleep()) << "wake_up() must come in between";
        asleep_.store(true, std::memory_order_seq_cst);
        return arrived_.load(std::memory_order_seq_cst) == seen_;
    }
    void wake_up() noexcept override {
        asleep_.store(false, std::memory_order_relaxed);
        waker_.drain();
    }

private:
    Waker waker_ = Waker::make().value();
    std::atomic<std::uint64_t> arrived_{0};
    std::atomic<std::uint64_t> signals_{0};
    std::atomic<bool> asleep_{false};
    std::uint64_t seen_ = 0;
};

/// Completes operations when a given number of arrivals has come.
class QuietNode final : public Driven {
public:
    explicit QuietNode(Progress& progress) : progress_(progress) { progress_.add(*this).value(); }
    QuietNode(const QuietNode&) = delete;
    QuietNode& operator=(const QuietNode&) = delete;
    ~QuietNode() override { progress_.remove(*this); }

    QuietCarrier& carrier() noexcept { return carrier_; }

    void expect(std::uint64_t arrivals, Completion& completion) {
        const Progress::Guard guard(progress_);
        expected_.emplace(arrivals, &completion);
    }
    /// The next arrival comes at the worst moment: just before the node falls asleep.
    void arrive_at_the_next_sleep() {
        const Progress::Guard guard(progress_);
        arrives_late_ = true;
    }
    std::uint64_t turns() const noexcept { return turns_.load(std::memory_order_relaxed); }

    std::span<port::Carrier* const> carriers() const noexcept override { return carriers_; }
    bool turn(TimePoint /*now*/) noexcept override {
        turns_.fetch_add(1, std::memory_order_relaxed);
        EXPECT_FALSE(carrier_.asleep()) << "wake_up() must precede a turn";
        const std::uint64_t arrived = carrier_.arrived();
        const bool active = arrived != before_;
        before_ = arrived;
        while (!expected_.empty() && expected_.begin()->first <= arrived) {
            Completion* const completion = expected_.begin()->second;
            expected_.erase(expected_.begin());
            progress_.complete(*completion);
        }
        return active;
    }
    std::optional<TimePoint> next_deadline() const noexcept override { return std::nullopt; }
    bool fall_asleep() noexcept override {
        if (std::exchange(arrives_late_, false)) carrier_.arrive();
        return Driven::fall_asleep();
    }

private:
    Progress& progress_;
    QuietCarrier carrier_;
    std::array<port::Carrier*, 1> carriers_{&carrier_};
    std::multimap<std::uint64_t, Completion*> expected_;
    std::uint64_t before_ = 0;
    bool arrives_late_ = false;
    std::atomic<std::uint64_t> turns_{0};
};

}  // namespace nexar::runtime

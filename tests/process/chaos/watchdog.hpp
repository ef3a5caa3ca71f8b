#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>

namespace nexar::chaos {

/// Notices calls that take too long. It counts its own wakeups, so that the time in which the
/// process is stopped does not count.
class Watchdog {
    using Clock = std::chrono::steady_clock;

public:
    /// Calls `on_hang` once with the name of the call.
    explicit Watchdog(std::function<void(const char*)> on_hang)
        : on_hang_(std::move(on_hang)),
          thread_([this](const std::stop_token& stop) { run(stop); }) {}

    /// A call in progress, from construction to destruction.
    class Call {
    public:
        Call(Watchdog& watchdog, const char* name,
             std::chrono::seconds most = std::chrono::seconds(10))
            : watchdog_(watchdog), name_(name) {
            watchdog_.most_ = static_cast<int>(most / kTick);
            watchdog_.name_ = name;
            ++watchdog_.serial_;
        }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        ~Call() {
            watchdog_.name_ = nullptr;
            ++watchdog_.serial_;
            watchdog_.ended(name_, Clock::now() - begun_);
        }

    private:
        Watchdog& watchdog_;
        const char* name_;
        Clock::time_point begun_ = Clock::now();
    };

    /// The times of the calls that took longer than all earlier ones of their name, and have not
    /// been returned before. For the thread that makes the calls. Includes time in which the
    /// process is stopped.
    std::map<std::string, std::chrono::microseconds> take_longest() {
        return std::exchange(news_, {});
    }

private:
    static constexpr std::chrono::milliseconds kTick{100};

    void run(const std::stop_token& stop) {
        std::uint64_t seen = 0;
        int ticks = 0;
        while (!stop.stop_requested()) {
            std::this_thread::sleep_for(kTick);
            const std::uint64_t now = serial_;
            const char* const name = name_;
            ticks = now == seen && name != nullptr ? ticks + 1 : 0;
            seen = now;
            if (name != nullptr && ticks == most_) on_hang_(name);
        }
    }

    void ended(const char* name, Clock::duration took) {
        const auto time = std::chrono::duration_cast<std::chrono::microseconds>(took);
        std::chrono::microseconds& longest = longest_[name];
        if (time > longest) news_[name] = longest = time;
    }

    std::function<void(const char*)> on_hang_;
    std::map<std::string, std::chrono::microseconds> longest_{};
    std::map<std::string, std::chrono::microseconds> news_{};
    std::atomic<std::uint64_t> serial_ = 0;
    std::atomic<const char*> name_ = nullptr;
    std::atomic<int> most_ = 0;
    std::jthread thread_;
};

}  // namespace nexar::chaos

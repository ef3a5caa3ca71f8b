#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nexar/rpc.hpp>
#include <stop_token>

namespace nexar::testing {

/// Blocks threads until another thread opens it.
class Gate {
public:
    void open() {
        const std::scoped_lock lock(mutex_);
        open_ = true;
        opened_.notify_all();
    }

    /// Waits until the gate is open. False after 30 seconds.
    bool pass() {
        std::unique_lock lock(mutex_);
        return opened_.wait_for(lock, std::chrono::seconds(30), [this] { return open_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool open_ = false;
};

/// A function that runs until it is told to stop.
struct UntilStopped {
    void run(const Call& call) {
        const std::stop_callback tell(call.stop, [this] { stopped.open(); });
        began.open();
        EXPECT_TRUE(stopped.pass());
    }
    auto body() {
        return [this](const Call& call) { run(call); };
    }

    Gate began{};
    Gate stopped{};
};

}  // namespace nexar::testing

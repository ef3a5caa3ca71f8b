#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace nexar::testing {

/// Closed until somebody opens it.
class Gate {
public:
    void open() {
        const std::scoped_lock lock(mutex_);
        open_ = true;
        opened_.notify_all();
    }

    /// False: nobody opened it for half a minute.
    bool pass() {
        std::unique_lock lock(mutex_);
        return opened_.wait_for(lock, std::chrono::seconds(30), [this] { return open_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool open_ = false;
};

}  // namespace nexar::testing

#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace nexar::testing {

/// One end of a line between two processes that carries whole messages.
class Channel {
public:
    explicit Channel(int descriptor) noexcept : descriptor_(descriptor) {}
    Channel(Channel&& other) noexcept;
    Channel& operator=(Channel&& other) noexcept;
    ~Channel();

    int descriptor() const noexcept { return descriptor_; }

    /// At most 4000 bytes. Says nothing to an end that is gone.
    void say(std::string_view message) const;
    /// The next message; none when it does not come within the time or the other end is gone.
    std::optional<std::string> hear(Duration within) const;
    /// The same without waiting.
    std::optional<std::string> heard() const { return hear(Duration::zero()); }

private:
    int descriptor_;
};

/// A process of its own for a part of a test, made by fork(): to be started while the test has one
/// thread only. Ends with the test, at the latest.
class ChildProcess {
public:
    /// Runs `body` in the child, which ends when it returns. What it throws is said to the parent
    /// as "failed: ...".
    explicit ChildProcess(const std::function<void(Channel&)>& body);
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;
    /// Kills and reaps it.
    ~ChildProcess();

    pid_t id() const noexcept { return id_; }
    const Channel& channel() const noexcept { return channel_; }

    /// SIGKILL; returns when it is gone.
    void kill();
    /// Waits for its end; the exit code, or -1 when a signal ended it.
    int wait();
    /// Memory that it occupies, in bytes.
    std::size_t resident_bytes() const;

private:
    pid_t id_ = -1;
    Channel channel_;
};

}  // namespace nexar::testing

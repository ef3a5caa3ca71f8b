#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace nexar::testing {

/// One end of a channel between two processes that carries whole messages.
class Channel {
public:
    explicit Channel(int descriptor) noexcept : descriptor_(descriptor) {}
    Channel(Channel&& other) noexcept;
    Channel& operator=(Channel&& other) noexcept;
    ~Channel();

    int descriptor() const noexcept { return descriptor_; }

    /// At most 4000 bytes. Does nothing if the other end is gone.
    void say(std::string_view message) const;
    /// The next message; nullopt after the timeout or if the other end is gone.
    std::optional<std::string> hear(Duration within) const;
    /// The same without waiting.
    std::optional<std::string> heard() const { return hear(Duration::zero()); }

private:
    int descriptor_;
};

/// A forked process that runs part of a test. Create it while the test has only one thread. It ends
/// with the test at the latest.
class ChildProcess {
public:
    /// Runs `body` in the child, which ends when it returns. An exception is reported to the parent
    /// as the message "failed: ...".
    explicit ChildProcess(const std::function<void(Channel&)>& body);
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;
    /// Kills and reaps it.
    ~ChildProcess();

    pid_t id() const noexcept { return id_; }
    const Channel& channel() const noexcept { return channel_; }

    /// Sends SIGKILL and waits for the end of the process.
    void kill();
    /// Waits for its end. Returns the exit code, or -1 if a signal ended it.
    int wait();
    /// Its resident memory in bytes.
    std::size_t resident_bytes() const;

private:
    pid_t id_ = -1;
    Channel channel_;
};

}  // namespace nexar::testing

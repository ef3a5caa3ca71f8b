#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/address.hpp"
#include "contender.hpp"

namespace nexar::bench {

/// Requests and their echoes, one at a time.
struct PingPlan {
    std::size_t bytes = 8;
    double seconds = 0.2;
};

/// The first byte of a request says whether another one follows.
inline constexpr std::byte kMoreFollow{0};
inline constexpr std::byte kLastOne{1};

/// Calls `exchange` for `seconds` and returns how long each call took. `exchange` sends a request
/// that begins with the mark and waits for its echo.
std::vector<double> time_requests(double seconds,
                                  const std::function<void(std::byte mark)>& exchange);

Address loopback(std::uint16_t port);

/// One end of a connection between the two processes; the client has dialed, the server has
/// accepted. Calls block, and throw nexar::Error if they fail or take longer than kPatience.
class Side {
public:
    virtual ~Side() = default;

    /// Client: sends bulk messages, with kSlots in flight. When it returns, the memory is free, but
    /// the server may not have received everything yet.
    virtual void send(std::size_t messages) = 0;

    /// Server: receives bulk messages.
    virtual void receive(std::size_t messages) = 0;

    /// Server: keeps driving the connection for a moment, so that the client learns that everything
    /// arrived before this process does something else.
    virtual void settle() = 0;

    /// Client: returns how long each request took until its echo arrived, in seconds.
    virtual std::vector<double> ping(const PingPlan& plan) = 0;

    /// Server: echoes requests of this size up to the one marked as the last.
    virtual void echo(std::size_t bytes) = 0;

    /// Client: ends the connection.
    virtual void leave() = 0;

    /// Server: keeps driving the connection until the client has left.
    virtual void stay() = 0;

    virtual SideNotes notes() = 0;
};

}  // namespace nexar::bench

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

/// The first byte of a request: whether another one follows.
inline constexpr std::byte kMoreFollow{0};
inline constexpr std::byte kLastOne{1};

/// How long each call of `exchange` took, which sends a request that begins with the mark and waits
/// for its echo, over so many seconds.
std::vector<double> time_requests(double seconds,
                                  const std::function<void(std::byte mark)>& exchange);

Address loopback(std::uint16_t port);

/// One end of a connection between the two processes; the client's was dialed, the server's
/// accepted. Calls block, and throw nexar::Error when they fail or take longer than kPatience.
class Side {
public:
    virtual ~Side() = default;

    /// Client: sends bulk messages, kSlots at a time on the way. When it returns the memory is
    /// free; what the server has seen by then is the server's to say.
    virtual void send(std::size_t messages) = 0;

    /// Server: takes bulk messages.
    virtual void receive(std::size_t messages) = 0;

    /// Server: serves the connection for a moment, so that the client hears that everything arrived
    /// before this process turns to something else.
    virtual void settle() = 0;

    /// Client: how long each request took until its echo was there, in seconds.
    virtual std::vector<double> ping(const PingPlan& plan) = 0;

    /// Server: echoes requests of that size until one says that it is the last.
    virtual void echo(std::size_t bytes) = 0;

    /// Client: ends the connection.
    virtual void leave() = 0;

    /// Server: serves the connection until the client has left.
    virtual void stay() = 0;

    virtual SideNotes notes() = 0;
};

}  // namespace nexar::bench

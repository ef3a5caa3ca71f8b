#pragma once

#include <cstdint>
#include <memory>
#include <nexar/result.hpp>

#include "support/udp_fault/relay.hpp"

namespace nexar::udp_fault {

/// A bad network in a box: listens on one UDP address and forwards to one target what clients send
/// there, and back, with the faults that the options ask for. Like a NAT it gives each client a
/// source port of its own towards the target.
///
/// IPv4 and IPv6, also one on each side; datagrams up to the largest; the ECN bits are kept. What
/// chance decides is decided by the seed: the n-th datagram of a direction meets the same fate in
/// every run (see FateSequence). What time decides follows the machine's clock.
///
/// Any thread may call anything but turn(). While nothing is due the proxy sleeps.
class Proxy {
public:
    /// Runs on a thread of its own until destroyed.
    static Result<Proxy> start(const ProxyOptions& options);
    /// Runs only inside turn().
    static Result<Proxy> open(const ProxyOptions& options);

    Proxy(Proxy&&) noexcept;
    Proxy& operator=(Proxy&&) noexcept;
    /// Stops at once: what still waits for its time is lost.
    ~Proxy();

    /// Where clients send to.
    const Address& address() const noexcept;
    std::uint64_t seed() const noexcept;

    /// Waits until a datagram comes, one is due, or the deadline; forwards what is to be forwarded.
    /// Only after open(), one thread at a time.
    void turn(TimePoint deadline);

    /// What became of the datagrams so far.
    Traffic traffic(Direction direction) const;

    /// For the datagrams that come after the return. Refuses options that check() refuses, and
    /// changes nothing then.
    Result<void> set_faults(Direction direction, const FaultOptions& options);
    /// Swallows everything that comes in this direction, until told otherwise.
    void blackhole(Direction direction, bool on);
    /// Takes new source ports towards the target, and the next source address if the options name
    /// some. What the target still sends to the old ports is discarded.
    void rebind();

private:
    class Runner;

    explicit Proxy(std::unique_ptr<Runner> runner) noexcept;

    std::unique_ptr<Runner> runner_;
};

}  // namespace nexar::udp_fault

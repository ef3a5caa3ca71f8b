#pragma once

#include <cstdint>
#include <memory>
#include <nexar/result.hpp>

#include "support/udp_fault/relay.hpp"

namespace nexar::udp_fault {

/// A bad network in a box: listens on one UDP address and forwards datagrams between clients and
/// one target, with the faults in the options. Like a NAT, it gives each client its own source port
/// towards the target.
///
/// Supports IPv4 and IPv6, also one on each side, and datagrams of any size; keeps the ECN bits.
/// The seed determines all random decisions: the n-th datagram of a direction has the same fate in
/// every run (see FateSequence). Timing follows the machine's clock.
///
/// Any thread may call any function except turn(). The proxy sleeps while nothing is due.
class Proxy {
public:
    /// Runs on a thread of its own until destroyed.
    static Result<Proxy> start(const ProxyOptions& options);
    /// Runs only inside turn().
    static Result<Proxy> open(const ProxyOptions& options);

    Proxy(Proxy&&) noexcept;
    Proxy& operator=(Proxy&&) noexcept;
    /// Stops at once: waiting datagrams are lost.
    ~Proxy();

    /// Where clients send to.
    const Address& address() const noexcept;
    std::uint64_t seed() const noexcept;

    /// Waits until a datagram arrives, one is due, or the deadline; forwards all that are due. Only
    /// after open(), by one thread at a time.
    void turn(TimePoint deadline);

    /// What happened to the datagrams so far.
    Traffic traffic(Direction direction) const;

    /// Applies to datagrams that arrive after the call. Fails, and changes nothing, if check()
    /// rejects the options.
    Result<void> set_faults(Direction direction, const FaultOptions& options);
    /// Drops everything that arrives in this direction until switched off.
    void blackhole(Direction direction, bool on);
    /// Changes to new source ports towards the target, and to the next source address if the
    /// options list any. Discards what the target still sends to the old ports.
    void rebind();

private:
    class Runner;

    explicit Proxy(std::unique_ptr<Runner> runner) noexcept;

    std::unique_ptr<Runner> runner_;
};

}  // namespace nexar::udp_fault

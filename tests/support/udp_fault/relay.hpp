#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "support/udp_fault/impairment.hpp"
#include "support/udp_fault/udp_socket.hpp"

namespace nexar::udp_fault {

/// When the proxy changes its source ports towards the target on its own, like a NAT that has lost
/// its bindings. Times start with the first datagram of any client. Zero: never.
struct RebindOptions {
    Duration after{};  // the first time
    Duration every{};  // the period after that; without `after`, also the first time
    /// The local addresses to send from: the first at the start, then the next one each time,
    /// cyclically. Empty: the system chooses, and only the port changes. Ports are ignored.
    std::vector<Address> addresses{};
};

struct ProxyOptions {
    Address listen = Address::loopback_v4();
    Address target{};
    FaultOptions to_target{};
    FaultOptions to_client{};
    RebindOptions rebind{};
    QueueLimits queue{};  // per direction
    /// Clients served at once, each with a socket of its own. An additional client replaces the one
    /// that has been idle longest.
    std::size_t max_clients = 256;
    std::uint64_t seed = 1;
};

/// Validates the options, see check(FaultOptions). What only the system knows, such as whether a
/// port is free, is checked when the proxy opens.
Result<void> check(const ProxyOptions& options);

/// What happened to the datagrams of one direction, in the faults and in the sockets.
struct Traffic : FaultCounters {
    std::uint64_t unsent = 0;  // delivered, but the kernel refused them or the client is gone
    std::uint64_t stale = 0;   // arrived at an abandoned source port and were discarded
    std::uint64_t missed = 0;  // lost because the kernel's receive buffer was full
};

/// "received 12, delivered 11, dropped 1".
std::string describe(const Traffic& traffic);

/// The sockets of the proxy and the forwarding between them; see Proxy for the contract. Not
/// thread-safe, except that any thread may call wait() and wake() at any time.
class Relay {
public:
    static Result<std::unique_ptr<Relay>> open(const ProxyOptions& options);

    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    /// The result of wait(), for work().
    class Ready {
    private:
        friend class Relay;
        static constexpr std::size_t kMost = 64;
        std::array<std::uint64_t, kMost> sockets_{};
        std::size_t count_ = 0;
    };

    /// When work() has something to do even if no datagram arrives.
    std::optional<TimePoint> next_deadline() const noexcept;
    /// Sleeps until a datagram arrives, wake() is called or `until` is reached.
    Ready wait(TimePoint until) const;
    /// Ends the current wait(), or the next one.
    void wake() const noexcept;
    /// Forwards arrived and due datagrams; at most a few batches, so that it returns soon.
    void work(const Ready& ready);

    const Address& address() const noexcept { return listener_.local(); }
    Traffic traffic(Direction direction) const;
    Impairment& impairment(Direction direction) noexcept;
    void rebind();

private:
    /// A socket towards the target. It stays open for a while after its client has got another one:
    /// a closed port would answer the target with an ICMP error, which a NAT does not.
    struct Upstream {
        UdpSocket socket;
        std::uint64_t flow = 0;
        bool current = true;
    };
    struct Client {
        Address address{};
        std::uint64_t upstream = 0;
        std::uint64_t last_heard = 0;  // number of the batch
    };

    Relay(const ProxyOptions& options, UdpSocket listener, Descriptor epoll, Descriptor event);

    Result<void> watch(int descriptor, std::uint64_t id) const;
    Result<std::uint64_t> open_upstream(std::uint64_t flow);
    std::optional<std::uint64_t> flow_of(const Address& client);
    std::optional<std::uint64_t> admit(const Address& client);
    void forget_most_silent();
    void retire(std::uint64_t upstream);
    void close_upstream(std::uint64_t id);
    void take_from_clients(TimePoint now);
    void take_from_target(std::uint64_t upstream, TimePoint now);
    void send_to_target(const std::vector<Datagram>& datagrams);
    void send_to_clients(const std::vector<Datagram>& datagrams);
    void rebind_when_due(TimePoint now);
    Address next_source();

    ProxyOptions options_;
    UdpSocket listener_;
    Descriptor epoll_;
    Descriptor event_;
    Random random_;  // each direction has a fork of it
    Impairment to_target_;
    Impairment to_client_;
    ReceiveBatch batch_;
    std::vector<Datagram> due_;
    std::vector<Parcel> parcels_;

    std::unordered_map<Address, std::uint64_t> flows_;
    std::unordered_map<std::uint64_t, Client> clients_;      // by flow
    std::unordered_map<std::uint64_t, Upstream> upstreams_;  // by the id that epoll reports
    std::deque<std::uint64_t> retired_;                      // upstreams, oldest first
    std::uint64_t last_flow_ = 0;
    std::uint64_t last_id_;
    std::uint64_t batches_ = 0;
    std::size_t sources_used_ = 0;
    std::optional<TimePoint> rebind_at_{};
    bool heard_anyone_ = false;

    std::uint64_t unsent_to_target_ = 0;
    std::uint64_t unsent_to_client_ = 0;
    std::uint64_t stale_ = 0;
    std::uint64_t missed_by_closed_ = 0;
};

}  // namespace nexar::udp_fault

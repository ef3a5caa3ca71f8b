#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string_view>
#include <vector>

#include "base/address.hpp"
#include "base/buffer_pool.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "link/quic/endpoint.hpp"
#include "link/quic/packet_path.hpp"

/// Simulated datagrams between QUIC endpoints on virtual time: no socket, no thread, no sleep. What
/// is random comes from one seed, so a run is replayed by it, but for the keys and signatures that
/// GnuTLS makes.
namespace nexar::testing {

/// What happens to datagrams on their way. Probabilities are per datagram.
struct Weather {
    Duration delay = std::chrono::microseconds(100);
    Duration jitter{};  // up to this is added, each time anew: datagrams overtake each other
    double loss = 0;
    double duplicate = 0;
    double corrupt = 0;       // one bit is flipped
    std::size_t mtu = 65535;  // larger datagrams vanish
    bool cut = false;         // all vanish
};

struct Datagram {
    Address from{};
    Address to{};
    std::vector<std::byte> bytes{};
    std::uint8_t ecn = 0;
};

class VirtualNet;

/// One endpoint at an address of a VirtualNet.
class VirtualHost final : public quic::PacketPath {
public:
    VirtualHost(VirtualNet& net, const Address& address, quic::EndpointOptions options);

    quic::Endpoint& endpoint() noexcept { return *endpoint_; }
    const Address& address() const noexcept { return address_; }

    /// Called with each event, inside VirtualNet::run_*().
    std::function<void(port::Event)> on_event{};
    /// What largest_datagram() says: the MTU of the interface.
    std::size_t interface_limit = 65000;
    /// While set, nothing can be sent.
    bool blocked = false;

    /// The process ends without a word and another one begins at the same address.
    void restart(quic::EndpointOptions options);

    /// A NAT in front of the host gives it another address; the old one leads nowhere.
    void rebind(const Address& address);
    /// The host has one more address.
    void add_address(const Address& address) { more_.push_back(address); }

    bool has(const Address& address) const noexcept;
    Result<port::LinkId> dial(const Address& remote, const security::Expectation& expected);

    Sent send(const quic::PacketBatch& batch) override;
    std::size_t largest_datagram(const Address& /*remote*/) override { return interface_limit; }

private:
    friend class VirtualNet;

    quic::EndpointOptions seeded(quic::EndpointOptions options);
    std::optional<TimePoint> next_deadline() const;
    void turn();

    VirtualNet* net_;
    Address address_;
    std::vector<Address> more_;
    std::shared_ptr<Random> random_;
    std::unique_ptr<quic::Endpoint> endpoint_;
};

class VirtualNet {
public:
    explicit VirtualNet(std::uint64_t seed);

    TimePoint now() const noexcept { return now_; }
    Random& random() noexcept { return random_; }
    BufferPool& pool() noexcept { return pool_; }

    /// "10.0.0.<index>:7400"
    static Address address(unsigned index);

    VirtualHost& add_host(const Address& address, quic::EndpointOptions options);
    /// As if its machine were switched off.
    void remove_host(VirtualHost& host);

    /// Of all paths that none of those below is for.
    Weather weather{};
    /// Of what goes to one host, whoever sent it.
    void set_weather_to(const VirtualHost& host, const Weather& weather);

    /// Sees every datagram when it is sent, and may change it; false: it is lost.
    std::function<bool(Datagram&)> tap{};

    /// Puts a datagram on its way, past weather and tap.
    void inject(Datagram datagram, Duration delay);

    /// Goes on until `done()`, at most for `at_most` of virtual time; whether it was done.
    bool run_until(const std::function<bool()>& done, Duration at_most);
    void run_for(Duration duration);

    std::uint64_t datagrams_sent() const noexcept { return sent_; }
    /// Datagrams under way.
    std::size_t in_flight() const noexcept { return queue_.size(); }

private:
    friend class VirtualHost;

    struct Flight {
        TimePoint due{};
        std::uint64_t number = 0;
        std::shared_ptr<Datagram> datagram{};

        friend bool operator>(const Flight& a, const Flight& b) noexcept {
            return a.due != b.due ? a.due > b.due : a.number > b.number;
        }
    };
    struct Local {
        const VirtualHost* to = nullptr;
        Weather weather{};
    };

    void carry(Datagram datagram);
    void put(std::shared_ptr<Datagram> datagram, TimePoint due);
    const Weather& weather_to(const Address& to) const noexcept;
    VirtualHost* host_at(const Address& address) const noexcept;
    void deliver_due();
    std::optional<TimePoint> next_time() const;
    bool step(TimePoint limit);

    Random random_;
    TimePoint now_{std::chrono::seconds(1000)};
    BufferPool pool_;
    std::vector<std::unique_ptr<VirtualHost>> hosts_;
    std::vector<Local> local_;
    std::priority_queue<Flight, std::vector<Flight>, std::greater<>> queue_;
    std::uint64_t numbers_ = 0;
    std::uint64_t sent_ = 0;
    std::uint64_t steps_at_now_ = 0;
};

}  // namespace nexar::testing

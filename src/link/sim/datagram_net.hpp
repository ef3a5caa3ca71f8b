#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/address.hpp"
#include "base/buffer_pool.hpp"
#include "link/sim/datagram_host.hpp"
#include "link/sim/weather.hpp"
#include "link/sim/world.hpp"

namespace nexar::sim {

/// Simulated datagrams between QUIC endpoints: level 2 of the simulator, with the real connections.
///
/// The seed of the world replays a run: the same hosts send the same number of bytes at the same
/// times, and the trace is the same. Keys and signatures are not, because GnuTLS has its own random
/// source, and so the bits of the datagrams differ. Their sizes do not, as long as the certificates
/// are the same and signatures have a fixed size (Ed25519).
class DatagramNet final : private Actor {
public:
    /// The world must outlive it.
    explicit DatagramNet(World& world);

    World& world() const noexcept { return *world_; }
    BufferPool& pool() noexcept { return pool_; }

    /// "10.0.0.<index>:7400"
    static Address address(unsigned index);

    DatagramHost& add_host(const Address& address, quic::EndpointOptions options);
    /// Switches the machine off: it gets no more turns. The object stays.
    void remove_host(DatagramHost& host);
    /// Kills the process of a host: it gets no more turns, and the machine refuses datagrams to it
    /// (ICMP port unreachable). A refusal travels back like any datagram.
    void kill_process(DatagramHost& host);
    /// The machine of a process that was killed refuses nothing any more.
    static void switch_machine_off(DatagramHost& host) { host.refuses_ = false; }

    /// The default for all paths.
    DatagramWeather weather{};
    /// The weather of all datagrams to one host.
    void set_weather_to(const DatagramHost& host, const DatagramWeather& weather);

    /// Datagrams from `from` to `to`, including those in flight, are lost until heal(); with
    /// Way::both those in the other direction as well.
    void partition(const DatagramHost& from, const DatagramHost& to, Way way = Way::both);
    void heal(const DatagramHost& from, const DatagramHost& to, Way way = Way::both);
    void heal_all() { cuts_.clear(); }

    /// Stops the process of a host until that time: datagrams wait in its socket's buffer.
    void pause(DatagramHost& host, TimePoint until);

    /// Called with every datagram that is sent; may change it, or return false to drop it.
    std::function<bool(Datagram&)> tap{};

    /// Sends a datagram past weather, partitions and tap.
    void inject(Datagram datagram, Duration delay);

    std::uint64_t datagrams_sent() const noexcept { return sent_; }
    /// Datagrams in flight.
    std::size_t in_flight() const noexcept { return flights_.size(); }

private:
    friend class DatagramHost;

    struct Flight {
        TimePoint due{};
        std::uint64_t number = 0;
        DatagramHost* from = nullptr;  // null: injected
        std::shared_ptr<Datagram> datagram{};
        bool refused = false;  // on the way back to `from`: the refusal of the datagram
    };
    struct Local {
        const DatagramHost* to = nullptr;
        DatagramWeather weather{};
    };
    using Cut = std::pair<const DatagramHost*, const DatagramHost*>;  // from, to

    void turn(TimePoint now) override;
    std::optional<TimePoint> next_deadline() const override;

    static bool later(const Flight& a, const Flight& b) noexcept {
        return a.due != b.due ? a.due > b.due : a.number > b.number;
    }
    void carry(DatagramHost& from, Datagram datagram);
    void put(DatagramHost* from, std::shared_ptr<Datagram> datagram, Duration on_the_way,
             bool refused = false);
    void refuse(const Flight& flight);
    Duration late(const DatagramWeather& of_path);
    void deliver(const Flight& flight);
    const DatagramWeather& weather_to(const Address& to) const noexcept;
    DatagramHost* host_at(const Address& address) const noexcept;
    /// The machine with that address whose process was killed; null: none.
    const DatagramHost* refusing_at(const Address& address) const noexcept;

    World* world_;
    BufferPool pool_;
    std::vector<std::unique_ptr<DatagramHost>> hosts_;
    std::vector<Local> local_;
    std::set<Cut> cuts_;           // never iterated: the order of pointers is not replayed
    std::vector<Flight> flights_;  // a heap
    std::uint64_t numbers_ = 0;
    std::uint64_t sent_ = 0;
};

}  // namespace nexar::sim

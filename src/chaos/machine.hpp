#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/config.hpp"
#include "base/random.hpp"
#include "link/sim/datagram_net.hpp"
#include "runtime/join/host_services.hpp"
#include "runtime/seed/seed_server.hpp"

/// Whole clusters under faults on virtual time, with everything but sockets and threads real: QUIC,
/// joins, seeds, membership, engines and collectives. docs/testing.md describes it.
namespace nexar::chaos {

/// What a simulated process takes from its machine: the time of the world, and ids and random
/// numbers that follow from the seed. Keys are real, and differ from run to run; nothing depends on
/// their bits.
runtime::HostServices services_of(const sim::World& world, Random random);

/// A directory in memory, if this machine has one, that is removed with this object.
class StateStore {
public:
    StateStore();
    ~StateStore();
    StateStore(const StateStore&) = delete;
    StateStore& operator=(const StateStore&) = delete;

    std::string path() const { return path_ + "/state"; }

private:
    std::string path_;
};

/// A seed whose process runs on virtual time.
class Seed final : public sim::Actor {
public:
    Seed(sim::DatagramNet& net, const Address& address, const SeedOptions& options, Config config,
         Random random);
    /// As if its process were killed.
    ~Seed() override;

    void turn(TimePoint now) override;
    std::optional<TimePoint> next_deadline() const override { return server_->next_deadline(); }

    runtime::SeedServer& server() noexcept { return *server_; }
    sim::DatagramHost& host() noexcept { return *host_; }

    /// Called with each view that the seed adopts.
    std::function<void(const View&)> on_view{};

private:
    void report(const std::optional<View>& view);

    sim::DatagramNet* net_;
    std::unique_ptr<runtime::SeedServer> server_;
    sim::DatagramHost* host_ = nullptr;
    Epoch epoch_{};
};

}  // namespace nexar::chaos

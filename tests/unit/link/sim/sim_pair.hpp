#pragma once

#include <functional>

#include "link/sim/fabric.hpp"
#include "support/link_end.hpp"

namespace nexar::testing {

/// Two nodes on level 1 of the simulator, and a link after connect().
class SimPair {
public:
    explicit SimPair(std::uint64_t seed = 1, const sim::FabricOptions& options = {})
        : world(seed),
          fabric(world, options),
          a(fabric.add_node(sim::Fabric::identity(1))),
          b(fabric.add_node(sim::Fabric::identity(2))),
          client_side(a),
          server_side(b) {}

    LinkEnd& dial() {
        client_ = &client_side.dialed(a.dial(b.identity().node));
        return *client_;
    }
    bool connect() { return connect_to(server_side); }
    /// Connects to the node that currently has the second id; `there` is its side.
    bool connect_to(CarrierSide& there) {
        dial();
        return world.run_until(
            [&] {
                return client_->is_up() && there.accepted_count() != 0 && there.accepted().is_up();
            },
            std::chrono::seconds(10));
    }
    LinkEnd& client() noexcept { return *client_; }
    LinkEnd& server() { return server_side.accepted(); }
    bool run_until(const std::function<bool()>& done, Duration at_most = std::chrono::seconds(60)) {
        return world.run_until(done, at_most);
    }

    sim::World world;
    sim::Fabric fabric;
    sim::Carrier& a;
    sim::Carrier& b;
    CarrierSide client_side;
    CarrierSide server_side;

private:
    LinkEnd* client_ = nullptr;
};

}  // namespace nexar::testing

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/buffer_pool.hpp"
#include "engine/engine.hpp"
#include "link/sim/node_carrier.hpp"

namespace nexar::testing {

/// An engine on the carrier of a simulated node: a whole node except for its threads.
class EngineNode final : public sim::Actor {
public:
    /// The carrier must outlive this node.
    EngineNode(sim::NodeCarrier& carrier, BufferPool& pool,
               const engine::EngineOptions& options = {});
    ~EngineNode() override;

    engine::Engine& engine() noexcept { return engine_; }
    sim::NodeCarrier& carrier() noexcept { return *carrier_; }

    /// Called with every completed operation.
    std::function<void(engine::Operation&)> on_done{};

    /// Call after using the engine outside of a turn.
    void settle();

    /// Why links to peers ended, in order.
    const std::vector<Error>& downs() const noexcept { return downs_; }
    std::size_t links_up() const noexcept { return links_up_; }
    /// The links that are up now.
    const std::vector<port::Link*>& links() const noexcept { return links_; }

    void turn(TimePoint now) override;
    std::optional<TimePoint> next_deadline() const override;

private:
    void report_done();

    sim::NodeCarrier* carrier_;
    engine::Engine engine_;
    std::vector<Error> downs_;
    std::size_t links_up_ = 0;
    std::vector<port::Link*> links_;
    bool unsettled_ = false;
};

}  // namespace nexar::testing

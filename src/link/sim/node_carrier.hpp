#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "link/sim/world.hpp"
#include "port/link.hpp"

namespace nexar::sim {

/// The carrier of a simulated node, on either level. It has no descriptor to wait for: when
/// something arrives, next_deadline() changes, and the actor that drives the carrier gets a turn.
class NodeCarrier : public port::Carrier {
public:
    explicit NodeCarrier(World& world) noexcept : world_(&world) {}

    /// Sets the actor that calls on_ready(), flush() and poll_event(). The actor must outlive the
    /// carrier's use or be replaced.
    virtual void driven_by(Actor& actor) {
        driver_ = &actor;
        touch();
    }
    /// Null: no actor.
    Actor* driver() const noexcept { return driver_; }
    void driven_by_nobody() noexcept { driver_ = nullptr; }

    World& world() const noexcept { return *world_; }

    int descriptor() const noexcept final { return -1; }

protected:
    void touch() {
        if (driver_ != nullptr) world_->touch(*driver_);
    }

private:
    World* world_;
    Actor* driver_ = nullptr;
};

/// Drives one carrier and passes its events to a function: a node with nothing above its links.
class CarrierLoop final : public Actor {
public:
    using OnEvent = std::function<void(TimePoint now, port::LinkEvent event)>;

    /// Takes the packets of tunnels; empty: they are lost.
    std::function<void(port::TunnelPacket)> on_tunnelled{};

    /// The carrier must outlive it.
    explicit CarrierLoop(NodeCarrier& carrier, OnEvent on_event = {})
        : on_event_(std::move(on_event)), carrier_(&carrier) {
        carrier.driven_by(*this);
        carrier.world().add(*this);
    }

    ~CarrierLoop() override {
        if (carrier_->driver() == this) carrier_->driven_by_nobody();
    }

    void turn(TimePoint now) override {
        carrier_->on_ready(now);
        carrier_->flush(now);
        while (auto event = carrier_->poll_event()) {
            if (on_event_) on_event_(now, std::move(*event));
        }
        carrier_->flush(now);
        while (auto packet = carrier_->poll_tunnelled()) {
            if (on_tunnelled) on_tunnelled(std::move(*packet));
        }
    }
    std::optional<TimePoint> next_deadline() const override { return carrier_->next_deadline(); }

private:
    OnEvent on_event_;
    NodeCarrier* carrier_;
};

}  // namespace nexar::sim

#include "support/engine_node.hpp"

namespace nexar::testing {

EngineNode::EngineNode(sim::NodeCarrier& carrier, BufferPool& pool,
                       const engine::EngineOptions& options)
    : carrier_(&carrier), engine_(options, pool) {
    carrier.driven_by(*this);
    carrier.world().add(*this);
}

EngineNode::~EngineNode() {
    carrier_->world().remove(*this);
}

void EngineNode::turn(TimePoint now) {
    unsettled_ = false;
    carrier_->on_ready(now);
    carrier_->flush(now);
    while (const auto event = carrier_->poll_event()) {
        if (std::holds_alternative<port::Up>(event->what)) ++links_up_;
        engine_.handle(*event);
        if (const auto* down = std::get_if<port::Down>(&event->what)) {
            downs_.push_back(down->reason);
            carrier_->forget(event->link);
        }
    }
    carrier_->flush(now);
    tell_done();
}

void EngineNode::tell_done() {
    while (engine::Operation* operation = engine_.poll_done()) {
        if (on_done) on_done(*operation);
    }
}

void EngineNode::settle() {
    unsettled_ = true;
    tell_done();
    carrier_->world().touch(*this);
}

std::optional<TimePoint> EngineNode::next_deadline() const {
    if (unsettled_) return TimePoint{};
    return carrier_->next_deadline();
}

}  // namespace nexar::testing

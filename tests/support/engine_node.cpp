#include "support/engine_node.hpp"

#include <algorithm>

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
    engine_.advance(now);
    carrier_->on_ready(now);
    carrier_->flush(now);
    while (const auto event = carrier_->poll_event()) {
        if (const auto* up = std::get_if<port::Up>(&event->what)) {
            ++links_up_;
            links_.push_back(up->link);
        }
        engine_.handle(*event);
        if (const auto* down = std::get_if<port::Down>(&event->what)) {
            downs_.push_back(down->reason);
            std::erase_if(links_,
                          [&](const port::Link* link) { return link->id() == event->link; });
            carrier_->forget(event->link);
        }
    }
    engine_.poll_memory();
    carrier_->flush(now);
    report_done();
}

void EngineNode::report_done() {
    while (engine::Operation* operation = engine_.poll_done()) {
        if (on_done) on_done(*operation);
    }
}

void EngineNode::settle() {
    unsettled_ = true;
    report_done();
    carrier_->world().touch(*this);
}

std::optional<TimePoint> EngineNode::next_deadline() const {
    if (unsettled_) return TimePoint{};
    const auto links = carrier_->next_deadline();
    const auto engine = engine_.next_deadline();
    if (!links || !engine) return links ? links : engine;
    return std::min(*links, *engine);
}

}  // namespace nexar::testing

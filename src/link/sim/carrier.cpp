#include "link/sim/carrier.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "link/sim/fabric.hpp"

namespace nexar::sim {

namespace {
// Bounds the bytes that one call of on_ready() takes, so that writing gets its turn.
constexpr std::size_t kBytesPerTurn = std::size_t{256} * 1024;
}  // namespace

Carrier::Carrier(Fabric& fabric, World& world, const Identity& identity, std::string name)
    : NodeCarrier(world), fabric_(&fabric), identity_(identity), name_(std::move(name)) {}

port::LinkId Carrier::dial(const NodeId& node) {
    return fabric_->dial(*this, node);
}

Result<port::LinkId> Carrier::dial(TimePoint /*now*/, const port::DialTarget& target) {
    const auto* member = std::get_if<port::MemberTarget>(&target.peer);
    if (member == nullptr) return Error(Errc::unsupported, "a simulated link cannot dial a seed");
    return dial(member->node);
}

void Carrier::abandon(port::LinkId id) {
    Link* const link = find(id);
    if (link != nullptr) link->give_up();
}

Link* Carrier::find(port::LinkId link) noexcept {
    const auto found = links_.find(link.value());
    return found == links_.end() ? nullptr : found->second;
}

Link* Carrier::link_to(const NodeId& node) noexcept {
    for (const auto& [number, link] : links_) {
        if (link->is_up() && link->peer().node == node) return link;
    }
    return nullptr;
}

bool Carrier::on_ready(TimePoint now) {
    bool arrived = false;
    std::size_t budget = kBytesPerTurn;
    while (!arrivals_.empty() && arrivals_.due() <= now && budget != 0) {
        Pipe& pipe = arrivals_.first();
        const std::size_t bytes = pipe.receiver->arrive(pipe);
        budget -= std::min(budget, bytes + kPieceOverhead);
        arrived = true;
    }
    while (!timers_.empty() && timers_.due() <= now) {
        Link& link = timers_.first();
        timers_.remove(link);
        set_ready(link);
        link.on_time(now);
        // flush() rearms the timer.
        timers_.remove(link);
        arrived = true;
    }
    return arrived;
}

void Carrier::flush(TimePoint now) {
    fabric_->reap();
    while (!timers_.empty() && timers_.due() <= now) {
        Link& link = timers_.first();
        timers_.remove(link);
        set_ready(link);
    }
    // Links that become ready meanwhile get their turn in the next flush.
    flushing_.swap(ready_);
    for (Link* link : flushing_) {
        link->ready_ = false;
        if (!link->is_down()) link->flush(now);
    }
    flushing_.clear();
}

std::optional<TimePoint> Carrier::next_deadline() const {
    if (!ready_.empty() || !events_.empty()) return TimePoint::min();
    TimePoint due = TimePoint::max();
    if (!arrivals_.empty()) due = arrivals_.due();
    if (!timers_.empty()) due = std::min(due, timers_.due());
    if (due == TimePoint::max()) return std::nullopt;
    return due;
}

std::optional<port::LinkEvent> Carrier::poll_event() {
    if (events_.empty()) return std::nullopt;
    port::LinkEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
}

void Carrier::forget(port::LinkId id) {
    Link* link = find(id);
    if (link == nullptr) return;
    NEXAR_ASSERT(link->is_down(), "a link may be forgotten only after its Down");
    remove(*link);
}

void Carrier::emit(port::LinkEvent event) {
    world().trace(event.link.value(), event.what.index());
    events_.push_back(std::move(event));
    touch();
}

void Carrier::emit_before_down(port::LinkEvent event) {
    const auto down = std::ranges::find_if(events_, [&](const port::LinkEvent& waiting) {
        return waiting.link == event.link && std::holds_alternative<port::Down>(waiting.what);
    });
    if (down != events_.end()) events_.insert(down, std::move(event));
}

void Carrier::set_ready(Link& link) {
    if (!alive_ || link.is_down()) return;
    if (!std::exchange(link.ready_, true)) ready_.push_back(&link);
    touch();
}

void Carrier::detach(Link& link) {
    timers_.remove(link);
    if (std::exchange(link.ready_, false)) std::erase(ready_, &link);
    links_.erase(link.id().value());
}

void Carrier::remove(Link& link) {
    detach(link);
    link.forgotten_ = true;
    fabric_->forgotten_.push_back(link.start_.wire);
}

}  // namespace nexar::sim

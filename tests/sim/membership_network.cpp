#include <algorithm>
#include <utility>

#include "sim/membership_text.hpp"
#include "sim/membership_world.hpp"

/// The way of a message from one machine to another.
namespace nexar::testing {

Duration MembershipWorld::any_delay(bool datagram) {
    Duration delay = settings_.delay;
    if (settings_.jitter > 0)
        delay += Duration(static_cast<Duration::rep>(static_cast<double>(delay.count()) *
                                                     settings_.jitter * random_.uniform()));
    if (datagram && settings_.late > Duration::zero() && random_.chance(0.1))
        delay += Duration(static_cast<Duration::rep>(
            random_.below(static_cast<std::uint64_t>(settings_.late.count()))));
    return delay;
}

Duration MembershipWorld::any_delay(bool datagram, std::size_t hops) {
    Duration delay{};
    for (std::size_t i = 0; i < hops; ++i) delay += any_delay(datagram);
    return delay;
}

/// A machine is connected to those that are its neighbours in the view that it knows.
void MembershipWorld::place_links(std::size_t index) {
    const Machine& machine = machines_[index];
    if (!tunnels_ || machine.seed) return;
    std::uint64_t neighbours = 0;
    for (const NodeId& node : settings_.tunnels.neighbours(machine.view, machine.self.node))
        neighbours |= std::uint64_t{1} << index_of(node);
    tunnels_->place(index, neighbours);
    tunnels_->set_relaying(now_, index, !machine.paused);
}

bool MembershipWorld::near(std::size_t a, std::size_t b) const {
    return !tunnels_ || machines_[a].seed || machines_[b].seed || tunnels_->linked(a, b);
}

/// nullopt: the message is lost.
std::optional<MembershipTunnels::Way> MembershipWorld::way(std::size_t from, std::size_t to,
                                                           bool datagram) {
    if (tunnels_ && !machines_[from].seed && !machines_[to].seed)
        return tunnels_->way(now_, from, to, datagram, random_);
    if (path(from, to).cut || (!datagram && path(to, from).cut)) return std::nullopt;
    return MembershipTunnels::Way{.from = now_};
}

std::size_t MembershipWorld::new_parcel() {
    if (free_parcels_.empty()) {
        parcels_.emplace_back();
        return parcels_.size() - 1;
    }
    const std::size_t parcel = free_parcels_.back();
    free_parcels_.pop_back();
    return parcel;
}

void MembershipWorld::post(std::size_t from, membership::Outgoing&& outgoing) {
    if (message_watcher_) message_watcher_(from, outgoing);
    const std::size_t to = index_of(outgoing.to);
    const bool datagram = std::holds_alternative<wire::Heartbeat>(outgoing.message);
    Path& one = path(from, to);
    if (verbose_ > (datagram ? 1 : 0))
        say(from, "to " + std::to_string(to) + ": " + text_of(outgoing.message) +
                      (one.cut || path(to, from).cut ? " (cut)" : ""));
    note(from * kMost + to + outgoing.message.index() * 65'536);
    const bool refused = !machines_[to].running && !machines_[to].waiting && near(from, to);
    if (datagram && refuse_packets && refused) {
        const TimePoint when = now_ + settings_.delay * 2;
        call_at(when, [this, from, to] { hint(from, to, membership::Hint::doubtful); });
        return;
    }
    if (datagram) {
        one.beat = std::get<wire::Heartbeat>(outgoing.message);
        one.beat_from = machines_[from].self;
    }
    if (const auto taken = way(from, to, datagram)) send(from, to, *taken, outgoing.message);
}

void MembershipWorld::send(std::size_t from, std::size_t to, const MembershipTunnels::Way& way,
                           const membership::Message& message) {
    const bool datagram = std::holds_alternative<wire::Heartbeat>(message);
    const auto bad_luck = [this](double probability) {
        return probability > 0 && random_.chance(probability);
    };
    std::size_t copies = 1;
    if (datagram) {
        for (std::size_t i = 0; i < way.hops; ++i) {
            if (bad_luck(settings_.loss)) return;
        }
        if (bad_luck(settings_.duplicate)) copies = 2;
    }
    Path& one = path(from, to);
    for (std::size_t i = 0; i < copies; ++i) {
        TimePoint at = way.from + any_delay(datagram, way.hops);
        if (!datagram) {
            // Retransmissions delay a lane.
            for (std::size_t hop = 0; hop < way.hops; ++hop) {
                if (bad_luck(settings_.loss)) at += settings_.delay * 3;
            }
            at = std::max(at, one.last);
            one.last = at;
        }
        const std::size_t parcel = new_parcel();
        parcels_[parcel] = {.from = from,
                            .to = to,
                            .sender = machines_[from].self,
                            .from_seed = machines_[from].seed,
                            .link = datagram ? ~std::uint64_t{0} : one.link,
                            .relayed = !near(from, to),
                            .late = way.late,
                            .message = message};
        push({.at = at, .index = parcel, .what = What::parcel});
    }
}

bool MembershipWorld::lost(const Parcel& parcel) const {
    const Path& one = path(parcel.from, parcel.to);
    if (parcel.link != ~std::uint64_t{0}) {
        if (parcel.link != one.link) return true;
    } else if (one.cut && !parcel.relayed) {
        return true;
    }
    if (!parcel.late) return false;
    const std::uint64_t reached = tunnels_->reach(parcel.from, tunnels_->relaying());
    return (reached >> parcel.to & 1U) == 0;
}

void MembershipWorld::deliver(std::size_t index) {
    Parcel& parcel = parcels_[index];
    Machine& machine = machines_[parcel.to];
    if (!machine.running || lost(parcel)) {
        free_parcels_.push_back(index);
        return;
    }
    if (machine.paused) {
        machine.inbox.push_back(index);
        return;
    }
    if (machine.slow > Duration::zero() && machine.busy_until < now_ && random_.chance(0.1)) {
        machine.busy_until = now_ + Duration(static_cast<Duration::rep>(random_.below(
                                        static_cast<std::uint64_t>(machine.slow.count()))));
    }
    if (machine.busy_until > now_) {
        push({.at = machine.busy_until, .index = index, .what = What::parcel});
        return;
    }
    handle(index);
}

void MembershipWorld::handle(std::size_t index) {
    // Moved out: handling it may send parcels.
    const Parcel parcel = std::move(parcels_[index]);
    free_parcels_.push_back(index);
    Machine& machine = machines_[parcel.to];
    note(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
    machine.membership->handle(now_, parcel.sender, parcel.from_seed, parcel.message);
    drain(parcel.to);
}

}  // namespace nexar::testing

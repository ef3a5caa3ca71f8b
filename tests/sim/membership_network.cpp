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
    if (datagram && refuse_packets && !machines_[to].running && !machines_[to].waiting) {
        const TimePoint when = now_ + settings_.delay * 2;
        call_at(when, [this, from, to] { hint(from, to, membership::Hint::doubtful); });
        return;
    }
    if (datagram) {
        one.beat = std::get<wire::Heartbeat>(outgoing.message);
        one.beat_from = machines_[from].self;
    }
    if (one.cut) return;
    if (!datagram && path(to, from).cut) return;
    std::size_t copies = 1;
    if (datagram) {
        if (settings_.loss > 0 && random_.chance(settings_.loss)) return;
        if (settings_.duplicate > 0 && random_.chance(settings_.duplicate)) copies = 2;
    }
    for (std::size_t i = 0; i < copies; ++i) {
        TimePoint at = now_ + any_delay(datagram);
        if (!datagram) {
            // Retransmissions delay a lane.
            if (settings_.loss > 0 && random_.chance(settings_.loss)) at += settings_.delay * 3;
            at = std::max(at, one.last);
            one.last = at;
        }
        const std::size_t parcel = new_parcel();
        parcels_[parcel] = {
            .from = from,
            .to = to,
            .sender = machines_[from].self,
            .from_seed = machines_[from].seed,
            .link = datagram ? ~std::uint64_t{0} : one.link,
            .message = i + 1 < copies ? outgoing.message : std::move(outgoing.message)};
        push({.at = at, .index = parcel, .what = What::parcel});
    }
}

void MembershipWorld::deliver(std::size_t index) {
    Parcel& parcel = parcels_[index];
    Machine& machine = machines_[parcel.to];
    const Path& one = path(parcel.from, parcel.to);
    const bool lost = parcel.link == ~std::uint64_t{0} ? one.cut : parcel.link != one.link;
    if (lost || !machine.running) {
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

#include "routing/relay.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace nexar::routing {

namespace {

constexpr std::uint64_t kNanoseconds = 1'000'000'000;

/// How long an amount keeps a rate busy, rounded up.
Duration cost_of(std::uint64_t amount, std::uint64_t per_second) {
    return Duration((amount * kNanoseconds + per_second - 1) / per_second);
}

std::vector<std::byte> wrapped(const wire::Envelope& envelope, std::span<const std::byte> packet) {
    const auto header = wire::encode_envelope(envelope, packet.size());
    std::vector<std::byte> datagram;
    datagram.reserve(header.size() + packet.size());
    datagram.assign(header.begin(), header.end());
    datagram.insert(datagram.end(), packet.begin(), packet.end());
    return datagram;
}

void add(RelayQueueCounts& sum, const RelayQueueCounts& one) {
    sum.queued += one.queued;
    sum.sent += one.sent;
    sum.dropped_full += one.dropped_full;
    sum.dropped_old += one.dropped_old;
}

void keep_earlier(std::optional<TimePoint>& earliest, std::optional<TimePoint> other) {
    if (other && (!earliest || *other < *earliest)) earliest = other;
}

}  // namespace

std::string_view name(Outcome outcome) noexcept {
    constexpr std::array<std::string_view, kOutcomes> kNames{"sent",
                                                             "forwarded",
                                                             "delivered",
                                                             "waits for its other part",
                                                             "unknown member",
                                                             "returned to its source",
                                                             "too many hops",
                                                             "no route",
                                                             "too large",
                                                             "over the budget of its pair",
                                                             "too many packets",
                                                             "queue full",
                                                             "malformed",
                                                             "more hops than allowed",
                                                             "forged source"};
    return kNames[static_cast<std::size_t>(outcome)];
}

PairPaces::PairPaces(std::size_t capacity, std::uint64_t hash_seed)
    : capacity_(capacity), paces_(0, PairHash{.seed = hash_seed}) {}

bool PairPaces::admit(TimePoint now, const Pair& pair, Duration cost, Duration burst) {
    free_idle(now);
    const auto found = paces_.find(pair);
    if (found != paces_.end()) return found->second.admit(now, cost, burst);
    if (turns_.size() >= capacity_) return false;
    turns_.push_back(pair);
    return paces_[pair].admit(now, cost, burst);
}

/// Inspects two pairs in turn. Each call of admit() adds at most one, so idle ones do not pile up,
/// and no call takes long.
void PairPaces::free_idle(TimePoint now) {
    for (int i = 0; i < 2 && !turns_.empty(); ++i) {
        const auto found = paces_.find(turns_.front());
        if (found->second.idle(now)) {
            paces_.erase(found);
        } else {
            turns_.push_back(turns_.front());
        }
        turns_.pop_front();
    }
}

Relay::Relay(Rank self, NextHops& next_hops, const Outlets& outlets, const Roster& roster,
             const RelayOptions& options)
    : self_(self),
      next_hops_(next_hops),
      outlets_(outlets),
      roster_(roster),
      options_(options),
      pair_paces_(options.paced_pairs, options.hash_seed),
      parts_(options.parts) {
    NEXAR_ASSERT(options.max_hops >= 1 && options.max_hops <= wire::kMaxHops);
    NEXAR_ASSERT(options.pair_bytes_per_second > 0 && options.neighbour_packets_per_second > 0);
}

Outcome Relay::counted(Outcome outcome) noexcept {
    ++counts_[static_cast<std::size_t>(outcome)];
    return outcome;
}

Outcome Relay::send(TimePoint now, Rank target, std::uint16_t choice,
                    std::span<const std::byte> packet) {
    NEXAR_ASSERT(target != self_, "a node needs no tunnel to itself");
    NEXAR_ASSERT(!packet.empty() && packet.size() <= wire::kMaxPacketBytes);
    if (!roster_.is_member(target)) return counted(Outcome::unknown_member);
    const std::optional<Rank> next = next_hop(target, choice, std::nullopt);
    if (!next) return counted(Outcome::no_route);
    const wire::Envelope envelope{.source = self_,
                                  .target = target,
                                  .hops = options_.max_hops,
                                  .part = wire::kWholePacket,
                                  .choice = choice,
                                  .number = ++number_};
    bool taken = false;
    if (wire::kEnvelopeBytes + packet.size() <= outlets_.max_datagram(*next)) {
        taken = push(now, *next, {.source = self_, .target = target}, wrapped(envelope, packet));
    } else if (split_fits(packet.size(), *next)) {
        taken = push_parts(now, *next, envelope, packet);
    } else {
        return counted(Outcome::too_large);
    }
    return counted(taken ? Outcome::sent : Outcome::queue_full);
}

Outcome Relay::arrived(TimePoint now, Rank from, std::vector<std::byte> datagram) {
    NEXAR_ASSERT(from != self_);
    return counted(take(now, from, std::move(datagram)));
}

Outcome Relay::take(TimePoint now, Rank from, std::vector<std::byte>&& datagram) {
    const Duration cost = cost_of(1, options_.neighbour_packets_per_second);
    if (!neighbour(from).pace.admit(now, cost, options_.burst)) return Outcome::too_fast;
    const auto view = wire::decode_envelope(datagram);
    if (!view) return Outcome::malformed;
    if (const auto broken = violation(from, *view)) return *broken;
    // Not a violation: with wrong tables an envelope may come back, and views change.
    if (view->source == self_) return Outcome::returned;
    if (!roster_.is_member(view->source) || !roster_.is_member(view->target)) {
        return Outcome::unknown_member;
    }
    if (view->target == self_) return deliver(now, *view, std::move(datagram));
    return forward(now, from, *view, std::move(datagram));
}

/// What an honest node neither sends nor forwards, whatever other nodes do.
std::optional<Outcome> Relay::violation(Rank from, const View& view) const {
    if (view.hops > options_.max_hops) return Outcome::too_many_hops;
    if (view.hops == options_.max_hops && view.source != from) return Outcome::forged_source;
    const bool is_part = view.part != wire::kWholePacket;
    if (is_part && view.packet.size() > kMaxSplitBytes) return Outcome::malformed;
    return std::nullopt;
}

Outcome Relay::deliver(TimePoint now, const View& view, std::vector<std::byte>&& datagram) {
    ArrivedPacket packet{.source = view.source, .choice = view.choice};
    if (view.part == wire::kWholePacket) {
        packet.offset = static_cast<std::size_t>(view.packet.data() - datagram.data());
        packet.bytes = view.packet.size();
        packet.memory = std::move(datagram);
    } else {
        const Part part{.source = view.source,
                        .number = view.number,
                        .second = view.part == wire::kLastPart,
                        .bytes = view.packet};
        if (parts_.arrived(now, part, packet.memory) != Parts::Result::joined) {
            return Outcome::incomplete;
        }
        packet.bytes = packet.memory.size();
    }
    const std::size_t charge = RelayQueue::charge(packet.memory);
    if (arrived_bytes_ + charge > options_.arrived_bytes) return Outcome::queue_full;
    arrived_bytes_ += charge;
    arrived_.push_back(std::move(packet));
    return Outcome::delivered;
}

Outcome Relay::forward(TimePoint now, Rank from, const View& view,
                       std::vector<std::byte>&& datagram) {
    if (view.hops == 1) return Outcome::hops_spent;
    const Pair pair{.source = view.source, .target = view.target};
    const Duration cost = cost_of(datagram.size(), options_.pair_bytes_per_second);
    if (!pair_paces_.admit(now, pair, cost, options_.burst)) return Outcome::over_budget;
    const std::optional<Rank> next = next_hop(view.target, view.choice, from);
    if (!next) return Outcome::no_route;
    const auto hops = static_cast<std::uint8_t>(view.hops - 1);
    bool taken = false;
    if (datagram.size() <= outlets_.max_datagram(*next)) {
        wire::set_hops(datagram, hops);
        taken = push(now, *next, pair, std::move(datagram));
    } else if (view.part == wire::kWholePacket && split_fits(view.packet.size(), *next)) {
        const wire::Envelope envelope{.source = view.source,
                                      .target = view.target,
                                      .hops = hops,
                                      .part = wire::kWholePacket,
                                      .choice = view.choice,
                                      .number = view.number};
        taken = push_parts(now, *next, envelope, view.packet);
    } else {
        return Outcome::too_large;
    }
    return taken ? Outcome::forwarded : Outcome::queue_full;
}

/// Whatever the table says: never back, and only to a neighbour that has a link.
std::optional<Rank> Relay::next_hop(Rank target, std::uint16_t choice, std::optional<Rank> not_to) {
    const std::optional<Rank> next = next_hops_.next_hop(target, choice, not_to);
    if (!next || next == not_to || *next == self_) return std::nullopt;
    if (outlets_.max_datagram(*next) == 0) return std::nullopt;
    return next;
}

bool Relay::push(TimePoint now, Rank next, const Pair& pair, std::vector<std::byte>&& datagram) {
    return neighbour(next).queue.push(now, pair, std::move(datagram));
}

bool Relay::split_fits(std::size_t packet_bytes, Rank next) const {
    return packet_bytes <= kMaxSplitBytes &&
           wire::kEnvelopeBytes + (packet_bytes + 1) / 2 <= outlets_.max_datagram(next);
}

/// Splits into halves, so that both also fit into narrower links on the rest of the way.
bool Relay::push_parts(TimePoint now, Rank next, wire::Envelope envelope,
                       std::span<const std::byte> packet) {
    const Pair pair{.source = envelope.source, .target = envelope.target};
    const std::size_t first = (packet.size() + 1) / 2;
    envelope.part = wire::kFirstPart;
    if (!push(now, next, pair, wrapped(envelope, packet.first(first)))) return false;
    envelope.part = wire::kLastPart;
    return push(now, next, pair, wrapped(envelope, packet.subspan(first)));
}

std::optional<ArrivedPacket> Relay::poll_arrived() {
    if (arrived_.empty()) return std::nullopt;
    std::optional<ArrivedPacket> packet(std::move(arrived_.front()));
    arrived_.pop_front();
    arrived_bytes_ -= RelayQueue::charge(packet->memory);
    return packet;
}

std::optional<std::vector<std::byte>> Relay::poll(TimePoint now, Rank neighbour) {
    const auto found = neighbours_.find(neighbour);
    if (found == neighbours_.end()) return std::nullopt;
    return found->second.queue.pop(now);
}

std::vector<Rank> Relay::neighbours_with_work() const {
    std::vector<Rank> ranks;
    for (const auto& [rank, neighbour] : neighbours_) {
        if (!neighbour.queue.empty()) ranks.push_back(rank);
    }
    return ranks;
}

void Relay::disconnected(Rank neighbour) {
    const auto found = neighbours_.find(neighbour);
    if (found == neighbours_.end()) return;
    const RelayQueue& queue = found->second.queue;
    add(ended_, queue.counts());
    disconnected_ += queue.datagrams();
    neighbours_.erase(found);
}

void Relay::expire(TimePoint now) {
    parts_.expire(now);
    for (auto& [rank, neighbour] : neighbours_) neighbour.queue.expire(now);
}

std::optional<TimePoint> Relay::next_deadline() const {
    std::optional<TimePoint> earliest = parts_.next_deadline();
    for (const auto& [rank, neighbour] : neighbours_) {
        keep_earlier(earliest, neighbour.queue.next_deadline());
    }
    return earliest;
}

RelayQueueCounts Relay::queue_counts() const {
    RelayQueueCounts sum = ended_;
    for (const auto& [rank, neighbour] : neighbours_) add(sum, neighbour.queue.counts());
    return sum;
}

const RelayQueue* Relay::queue(Rank neighbour) const {
    const auto found = neighbours_.find(neighbour);
    return found == neighbours_.end() ? nullptr : &found->second.queue;
}

Relay::Neighbour& Relay::neighbour(Rank rank) {
    return neighbours_.try_emplace(rank, options_.queue, options_.hash_seed).first->second;
}

}  // namespace nexar::routing

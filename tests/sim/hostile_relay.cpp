#include "sim/hostile_relay.hpp"

#include <array>

namespace nexar::testing {

namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 10> kNames{
    "none",        "drops_all",  "drops_half",     "reorders", "repeats",
    "alters_some", "alters_all", "alters_choices", "replays",  "everything"};
constexpr std::uint64_t kMostLate = 20'000;  // microseconds
constexpr std::size_t kMostKept = 200;
constexpr std::size_t kChoiceAt = wire::kHopsAt + 2;

}  // namespace

std::string_view name(Hostility hostility) noexcept {
    return kNames.at(static_cast<std::size_t>(hostility));
}

std::optional<wire::EnvelopeView> relayed_envelope(const port::LinkEvent& event,
                                                   std::uint32_t rank) {
    const auto* const arrived = std::get_if<port::DatagramArrived>(&event.what);
    if (arrived == nullptr || arrived->bytes.size() <= wire::kEnvelopeBytes) return std::nullopt;
    if (arrived->bytes[1] != static_cast<std::byte>(wire::FrameType::envelope)) return std::nullopt;
    const auto envelope = wire::decode_envelope(arrived->bytes);
    if (!envelope || envelope->target == Rank(rank)) return std::nullopt;
    return *envelope;
}

HostileRelay::HostileRelay(RingCluster& cluster, std::uint32_t rank, std::uint64_t seed)
    : cluster_(&cluster), rank_(rank), random_(seed) {
    cluster.node(rank).host().event_tap = [this](port::LinkEvent& event) { return take(event); };
}

HostileRelay::~HostileRelay() {
    cluster_->node(rank_).host().event_tap = {};
}

bool HostileRelay::take(port::LinkEvent& event) {
    const auto envelope = relayed_envelope(event, rank_);
    if (!envelope) return true;
    ++taken_;
    if (hostility_ == Hostility::none) return true;
    const port::Link* const behind = cluster_->link(rank_, cluster_->before(rank_));
    const bool comes_from_before = behind != nullptr && behind->id() == event.link;
    const std::uint32_t to = comes_from_before ? cluster_->after(rank_) : cluster_->before(rank_);
    Datagram datagram = std::get<port::DatagramArrived>(event.what).bytes;
    if (envelope->hops == 1) return false;
    wire::set_hops(datagram, static_cast<std::uint8_t>(envelope->hops - 1));
    Hostility hostility = hostility_;
    if (hostility == Hostility::everything) {
        hostility = static_cast<Hostility>(random_.below(kNames.size() - 1));
    }
    treat(hostility, to, datagram);
    return false;
}

void HostileRelay::treat(Hostility hostility, std::uint32_t to, const Datagram& datagram) {
    switch (hostility) {
        case Hostility::none:
        case Hostility::everything:
            return pass(to, datagram);
        case Hostility::drops_all:
            ++mistreated_;
            return;
        case Hostility::drops_half:
            if (random_.chance(0.5)) return pass(to, datagram);
            ++mistreated_;
            return;
        case Hostility::reorders:
            return pass_later(to, datagram, std::chrono::microseconds(random_.below(kMostLate)));
        case Hostility::repeats:
            pass(to, datagram);
            pass(to, datagram);
            return pass_later(to, datagram, 5ms);
        case Hostility::alters_some:
            return random_.chance(0.5) ? pass_altered(to, datagram) : pass(to, datagram);
        case Hostility::alters_all:
            return pass_altered(to, datagram);
        case Hostility::alters_choices:
            return pass_with_another_choice(to, datagram);
        case Hostility::replays:
            return replay(to, datagram);
    }
}

void HostileRelay::pass(std::uint32_t to, const Datagram& datagram) {
    if (port::Link* const link = cluster_->link(rank_, to)) link->send_relayed(datagram);
}

void HostileRelay::pass_later(std::uint32_t to, const Datagram& datagram, Duration delay) {
    ++mistreated_;
    cluster_->world().after(delay, [this, to, datagram] {
        pass(to, datagram);
        cluster_->poke(rank_);
    });
}

void HostileRelay::pass_altered(std::uint32_t to, Datagram datagram) {
    ++mistreated_;
    const std::size_t packet = datagram.size() - wire::kEnvelopeBytes;
    const std::size_t at = wire::kEnvelopeBytes + random_.below(packet);
    datagram[at] ^= static_cast<std::byte>(1U << random_.below(8));
    pass(to, datagram);
}

void HostileRelay::pass_with_another_choice(std::uint32_t to, Datagram datagram) {
    ++mistreated_;
    datagram[kChoiceAt] = static_cast<std::byte>(random_.next() >> 56U);
    datagram[kChoiceAt + 1] = static_cast<std::byte>(random_.next() >> 56U);
    pass(to, datagram);
}

/// The first packets pass, so that there is something to replay.
void HostileRelay::replay(std::uint32_t to, const Datagram& datagram) {
    if (kept_.size() < kMostKept) {
        kept_.push_back(datagram);
        return pass(to, datagram);
    }
    ++mistreated_;
    const Rank target = wire::decode_envelope(datagram)->target;
    for (int i = 0; i < 3; ++i) {
        const Datagram& old = kept_[random_.below(kept_.size())];
        if (wire::decode_envelope(old)->target == target) pass(to, old);
    }
}

}  // namespace nexar::testing

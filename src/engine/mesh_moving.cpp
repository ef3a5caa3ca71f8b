// Which members the mesh reaches directly and which through tunnels, and links that move from one
// to the other.

#include <algorithm>
#include <utility>

#include "base/address_order.hpp"
#include "engine/mesh.hpp"

namespace nexar::engine {

namespace {

MeshPath::Options path_options(const MeshOptions& options) {
    return {.moves = options.tunnels,
            .pause = options.direct_every,
            .longest_pause = options.direct_longest,
            .insistence = options.move_patience};
}

}  // namespace

Mesh::Way::Way(const NodeId& peer, const MeshOptions& options)
    : race(options.race), path(peer, path_options(options)) {}

void Mesh::set_neighbours(std::optional<std::vector<NodeId>> neighbours) {
    neighbours_ = std::move(neighbours);
    if (neighbours_) std::ranges::sort(*neighbours_);
}

bool Mesh::is_neighbour(const NodeId& node) const {
    return !neighbours_ || std::ranges::binary_search(*neighbours_, node);
}

/// The addresses to which a link may move, best first. A peer on another host cannot answer at its
/// loopback address.
std::vector<Address> Mesh::direct_addresses(const Member& member) const {
    if (!options_.tunnels) return {};
    std::vector<Address> all = best_first(member.addresses, own_);
    if (!seem_to_share_host(member.addresses, own_)) {
        std::erase_if(all, [](const Address& address) { return address.is_loopback(); });
    }
    return all;
}

std::vector<Address> Mesh::addresses_to_dial(const Way& way) const {
    std::vector<Address> all;
    if (way.neighbour) all = best_first(way.member.addresses, own_);
    if (!way.neighbour || options_.tunnels) all.push_back(Address::tunnel(way.member.node.bytes()));
    return all;
}

/// The peer has become a neighbour, or is not one any more: dials it where it is now to be reached.
void Mesh::redirect(TimePoint now, Way& way) {
    for (Candidate* candidate : way.candidates) {
        const bool chosen = candidate->state == Candidate::State::greeted;
        const bool closing = candidate->state == Candidate::State::closing;
        if (candidate->dialed && !chosen && !closing) {
            drop(*candidate, "the topology of the cluster has changed");
        }
    }
    if (!way.neighbour && !way.connected) way.wanted = way.needed;
    way.redirected = way.race.running();
    leave_old_round(now, way);
}

/// Ends a round at addresses that are not those of the peer any more, unless a link was chosen.
/// Returns true if it did.
bool Mesh::leave_old_round(TimePoint now, Way& way) {
    if (!way.redirected || choice(way).chosen != nullptr) return false;
    way.redirected = false;
    way.race.stop_until(now);
    return true;
}

/// Moves a link that does not seem to work. If it cannot move, dials the peer until the link works
/// again, or another one replaces it.
void Mesh::doubt(TimePoint now, Way& way) {
    if (std::exchange(way.doubted, true)) return;
    way.wanted = true;
    way.race.set_longest_wait(options_.again_every);
    const bool moves = way.path.leave(now);
    way.race.stop_until(moves ? now + options_.move_patience : now);
}

/// From now on the engine has this link.
void Mesh::watch(Candidate& candidate, Way& way) {
    handed_over_[candidate.id] = candidate.node;
    way.path.begin(now_, *candidate.link, candidate.dialed);
    paths_due_ = std::min(paths_due_, way.path.due());
}

/// Handles what an event of a link that the engine has means for its path.
void Mesh::follow(TimePoint now, const port::LinkEvent& event) {
    const auto* changed = std::get_if<port::PathChanged>(&event.what);
    const auto* failed = std::get_if<port::PathFailed>(&event.what);
    const bool down = std::holds_alternative<port::Down>(event.what);
    if (changed == nullptr && failed == nullptr && !down) return;
    const auto found = handed_over_.find(event.link);
    if (found == handed_over_.end()) return;
    Way* const way = way_to(found->second);
    if (down) handed_over_.erase(found);
    // The pair may have another link already.
    if (way == nullptr || way->path.link() == nullptr) return;
    if (way->path.link()->id() != event.link) return;
    now_ = now;
    quiet_ = false;
    ++changes_;
    if (down) return way->path.end();
    if (changed != nullptr) way->path.on_changed(now, changed->remote);
    if (failed != nullptr) way->path.on_failed(now, failed->remote);
    paths_due_ = std::min(paths_due_, way->path.due());
    if (!way->doubted || way->race.running() || way->path.moving()) return;
    way->race.stop_until(changed != nullptr ? now + options_.settle : now);
}

void Mesh::on_path_request(TimePoint now, const NodeId& from, bool direct) {
    Way* const way = way_to(from);
    if (way == nullptr || closing_) return;
    now_ = now;
    way->path.asked(now, direct);
    paths_due_ = std::min(paths_due_, way->path.due());
}

std::optional<PathRequest> Mesh::poll_path_request() {
    if (requests_.empty()) return std::nullopt;
    const PathRequest first = requests_.front();
    requests_.pop_front();
    return first;
}

void Mesh::turn_paths(TimePoint now) {
    paths_due_ = TimePoint::max();
    for (auto& [node, way] : ways_) {
        way.path.turn(now);
        paths_due_ = std::min(paths_due_, way.path.due());
        const std::optional<bool> direct = way.path.take_request();
        if (!direct) continue;
        std::erase_if(requests_, [&](const PathRequest& one) { return one.to == way.member.node; });
        requests_.push_back({.to = way.member.node, .direct = *direct});
    }
}

}  // namespace nexar::engine

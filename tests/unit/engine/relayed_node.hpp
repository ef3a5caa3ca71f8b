#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/mesh.hpp"
#include "link/sim/datagram_net.hpp"
#include "support/quic_pair.hpp"

namespace nexar::engine {

using nexar::testing::QuicPair;

inline constexpr std::uint32_t kRelay = 2;  // its rank
/// Between two heartbeats, and when a peer without any is silent.
inline constexpr Duration kBeat = std::chrono::milliseconds(100);
inline constexpr Duration kSilence = std::chrono::milliseconds(500);

/// What a datagram is; its source and its target follow.
enum class RelayedKind : std::uint8_t { beat, packet, request };
inline constexpr std::size_t kFront = 3;

inline std::vector<std::byte> datagram(RelayedKind kind, std::uint32_t source, std::uint32_t target,
                                       std::span<const std::byte> rest = {}) {
    std::vector<std::byte> bytes = {static_cast<std::byte>(kind), static_cast<std::byte>(source),
                                    static_cast<std::byte>(target)};
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    return bytes;
}

/// One of three nodes, each an engine and a mesh on real QUIC connections over simulated datagrams.
/// What the first two exchange in a tunnel travels in relayed datagrams of their links with the
/// third, which forwards it. Nodes send each other heartbeats and find out who is silent.
class RelayedNode final : public sim::Actor, private Dialer {
public:
    RelayedNode(sim::DatagramNet& net, std::uint32_t rank, const View& view)
        : rank_(rank),
          view_(view),
          host_(&net.add_host(view.members[rank].addresses[0],
                              QuicPair::endpoint_options(QuicPair::node(rank + 1)))),
          engine_({}, net.pool()),
          mesh_(engine_, *this, {.tunnels = true}) {
        std::vector<NodeId> members;
        for (const Member& member : view.members) members.push_back(member.node);
        world_ = &engine_.add_context(ContextId(7), members, Rank(rank));
        engine_.await_verdicts(true);
        mesh_.set_addresses({host_->address()});
        host_->driven_by(*this);
        net.world().add(*this);
    }

    ~RelayedNode() override { host_->driven_by_nobody(); }

    void adopt(const View& view, const std::vector<std::uint32_t>& neighbours) {
        std::vector<NodeId> nodes;
        for (const std::uint32_t rank : neighbours) nodes.push_back(id_of(rank));
        view_ = view;
        engine_.set_view(view);
        mesh_.set_neighbours(nodes);
        mesh_.adopt(host_->world().now(), view, id_of(rank_));
        poked_ = true;
    }
    void start(SendOperation& send) {
        engine_.start(*world_, send);
        poked_ = true;
    }
    void start(ReceiveOperation& receive) {
        engine_.start(*world_, receive);
        poked_ = true;
    }
    void close() {
        closed_ = true;
        mesh_.close(Error(Errc::closed, "the node was closed"));
        engine_.close();
        poked_ = true;
    }
    bool idle() const { return engine_.idle() && mesh_.idle(); }

    Mesh& mesh() { return mesh_; }
    sim::DatagramHost& host() { return *host_; }
    bool in_tunnel(std::uint32_t peer) const { return report(peer).tunnel; }
    bool is_connected(std::uint32_t peer) const { return engine_.is_connected(id_of(peer)); }
    PeerReport report(std::uint32_t peer) const {
        const auto all = mesh_.reports();
        return *std::ranges::find(all, Rank(peer), &PeerReport::rank);
    }
    std::size_t lost_links() const { return lost_links_; }
    std::size_t forwarded() const { return forwarded_; }
    std::size_t requests() const { return requests_; }

    void turn(TimePoint now) override {
        poked_ = false;
        engine_.advance(now);
        host_->on_ready(now);
        host_->flush(now);
        take_events(now);
        if (now >= beats_at_) beat(now);
        mesh_.turn(now);
        carry_requests();
        host_->flush(now);
        while (auto packet = host_->poll_tunnelled()) {
            relay(datagram(RelayedKind::packet, rank_, rank_of(packet->to), packet->bytes));
        }
        host_->flush(now);
        while (engine_.poll_done() != nullptr) {
        }
    }
    std::optional<TimePoint> next_deadline() const override {
        if (poked_) return TimePoint{};
        TimePoint due = beats_at_;
        for (const auto& one :
             {host_->next_deadline(), engine_.next_deadline(), mesh_.next_deadline()}) {
            if (one) due = std::min(due, *one);
        }
        return due;
    }

private:
    struct Neighbour {
        std::vector<port::Link*> links{};  // oldest first
        TimePoint heard_at{};
        bool silent = false;
    };

    Result<port::LinkId> dial(TimePoint now, const Address& to, const NodeId& node) override {
        return host_->dial(now, {.address = to, .peer = port::MemberTarget{.node = node}});
    }
    void abandon(port::LinkId link) override { host_->abandon(link); }

    NodeId id_of(std::uint32_t rank) const { return view_.members.at(rank).node; }
    std::uint32_t rank_of(const NodeId& node) const { return view_.find(node)->rank.value(); }

    void take_events(TimePoint now) {
        while (const auto event = host_->poll_event()) {
            if (const auto* up = std::get_if<port::Up>(&event->what)) {
                const std::uint32_t rank = rank_of(up->link->peer().node);
                peers_[rank].links.push_back(up->link);
                peers_[rank].heard_at = now;
                ranks_[event->link] = rank;
            }
            if (const auto* arrived = std::get_if<port::DatagramArrived>(&event->what)) {
                take(now, ranks_.at(event->link), arrived->bytes);
                continue;
            }
            if (!mesh_.handle(now, *event)) engine_.handle(*event);
            if (std::holds_alternative<port::Down>(event->what)) {
                forget(event->link);
                host_->forget(event->link);
            }
        }
    }
    void forget(port::LinkId link) {
        const auto found = ranks_.find(link);
        if (found == ranks_.end()) return;  // it never came up
        const auto peer = peers_.find(found->second);
        std::erase_if(peer->second.links, [&](const auto* one) { return one->id() == link; });
        if (peer->second.links.empty()) peers_.erase(peer);
        ranks_.erase(found);
        if (!closed_) ++lost_links_;
    }

    void take(TimePoint now, std::uint32_t from, const std::vector<std::byte>& bytes) {
        const auto source = std::to_integer<std::uint32_t>(bytes.at(1));
        const auto target = std::to_integer<std::uint32_t>(bytes.at(2));
        if (target != rank_) return relay(bytes);
        const auto rest = std::span(bytes).subspan(kFront);
        switch (static_cast<RelayedKind>(bytes[0])) {
            case RelayedKind::beat:
                peers_.at(from).heard_at = now;
                break;
            case RelayedKind::packet:
                host_->on_tunnelled(now, id_of(source), rest);
                break;
            case RelayedKind::request:
                mesh_.on_path_request(now, id_of(source), rest[0] != std::byte{0});
                ++requests_;
                break;
        }
    }
    /// To the relay, or from it to the target. What the link has no room for is lost.
    void relay(const std::vector<std::byte>& bytes) {
        const auto next = rank_ == kRelay ? std::to_integer<std::uint32_t>(bytes[2]) : kRelay;
        const auto peer = peers_.find(next);
        if (peer == peers_.end() || !peer->second.links.front()->send_relayed(bytes)) return;
        if (rank_ == kRelay) ++forwarded_;
    }
    void carry_requests() {
        while (const auto asks = mesh_.poll_path_request()) {
            const std::array content{asks->direct ? std::byte{1} : std::byte{0}};
            relay(datagram(RelayedKind::request, rank_, rank_of(asks->to), content));
        }
    }
    /// Heartbeats, and who is silent.
    void beat(TimePoint now) {
        beats_at_ = now + kBeat;
        for (auto& [rank, peer] : peers_) {
            peer.links.front()->send_datagram(datagram(RelayedKind::beat, rank_, rank));
            const bool silent = now - peer.heard_at > kSilence;
            if (std::exchange(peer.silent, silent) != silent) {
                engine_.set_silent(id_of(rank), silent);
            }
        }
    }

    std::uint32_t rank_;
    View view_;
    sim::DatagramHost* host_;
    Engine engine_;
    Mesh mesh_;
    Context* world_ = nullptr;
    std::map<std::uint32_t, Neighbour> peers_;  // by rank, those with a link that is up
    std::map<port::LinkId, std::uint32_t> ranks_;
    TimePoint beats_at_{};
    bool poked_ = false;
    bool closed_ = false;
    std::size_t lost_links_ = 0;
    std::size_t forwarded_ = 0;
    std::size_t requests_ = 0;
};

}  // namespace nexar::engine

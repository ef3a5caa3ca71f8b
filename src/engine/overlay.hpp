#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/identity.hpp"
#include "base/time.hpp"
#include "base/view.hpp"
#include "engine/engine.hpp"
#include "engine/neighbourhood.hpp"
#include "port/link.hpp"
#include "port/signer.hpp"
#include "routing/graph.hpp"
#include "routing/link_states.hpp"
#include "routing/relay.hpp"
#include "routing/routes.hpp"

namespace nexar::engine {

struct OverlayOptions {
    routing::RelayOptions relay{};
    /// How long a neighbour may take to connect, after a view or after the last link that came up,
    /// before this node tells the others that their link is broken; and how long that may go on
    /// after a view. A node that gets its links one after the other is slow, or has slow peers.
    /// Where all members are neighbours, all have the longest time: any of them can relay for a
    /// pair that cannot connect, and n members would tell each other of n links.
    Duration grace = std::chrono::seconds(1);
    Duration longest_grace = std::chrono::seconds(30);
    /// When the packets of a tunnel go another way because nothing came back: the first time. It
    /// doubles with each change, up to `longest_patience`.
    Duration patience = std::chrono::milliseconds(100);
    Duration longest_patience = std::chrono::seconds(1);
    /// Where all members are neighbours: how long a link must have failed before this node tells
    /// the others. A view without a member that died comes earlier, so nobody says n times that
    /// its links are broken; and a pair that is cut needs nobody's word to find a relay.
    Duration discretion = std::chrono::seconds(1);
};

/// Lets members communicate that have no direct link: decides who is a neighbour of whom, carries
/// the packets of tunnels over the links of neighbours, and tells the others which links are
/// broken. Sans-I/O, like the engine.
///
/// A tunnel is an ordinary QUIC connection whose packets the carrier of each end gives to
/// poll_tunnelled() and takes from on_tunnelled(). This class puts them into envelopes and those
/// into datagrams of direct links, forwards envelopes of others, and picks another way when nothing
/// comes back. Only packets that the other end protected and that are new count as coming back, so
/// that a relay which alters or repeats them does not keep a tunnel on its way.
class Overlay final : private routing::NextHops, private routing::Outlets, private routing::Roster {
public:
    /// What it uses. All must outlive it. `signer` has the key with which this node joined.
    struct Surroundings {
        Engine& engine;
        port::Carrier& carrier;
        const port::Signer& signer;
        Neighbourhood& neighbourhood;
    };

    explicit Overlay(const Surroundings& surroundings, const OverlayOptions& options = {});
    Overlay(const Overlay&) = delete;
    Overlay& operator=(const Overlay&) = delete;

    /// Adopts a view that contains `me` and is newer than the previous one.
    void adopt(TimePoint now, const View& view, const Identity& me);

    /// The members that this node connects to directly; nullopt: all of them.
    std::optional<std::vector<NodeId>> neighbours() const;
    bool is_neighbour(const NodeId& node) const;
    /// All members are neighbours, so that tunnels are needed only around broken links.
    bool complete() const { return graph_ == nullptr || graph_->complete(); }
    std::shared_ptr<const routing::Graph> graph() const noexcept { return graph_; }

    /// Takes an event that carries an envelope, and moves its bytes out. Returns false for all
    /// others.
    bool take(TimePoint now, port::LinkEvent& event);

    /// Carries what waits. The links must be flushed afterwards if it returns true.
    bool turn(TimePoint now);
    std::optional<TimePoint> next_deadline() const;

    /// The neighbours over which packets for a member travel now, for display: the first hop and
    /// the number of hops. nullopt: there is no way.
    struct Way {
        Rank first{};
        std::uint32_t hops = 0;
    };
    std::optional<Way> way_to(Rank member);

    const routing::Relay* relay() const noexcept { return relay_.get(); }

private:
    /// The link to a neighbour.
    struct Direct {
        port::LinkId id{};
        port::Link* link = nullptr;
    };
    /// The packets between this node and one other, in both directions.
    struct Tunnel {
        std::uint16_t choice = 0;
        std::optional<TimePoint> unanswered{};  // since when nothing new has come back,
        unsigned sent = 0;                      // and packets sent since
        Duration patience{};
        bool proven = false;  // something new has come back once
    };

    // routing::NextHops, Outlets and Roster
    std::optional<Rank> next_hop(Rank target, std::uint16_t choice,
                                 std::optional<Rank> not_to) override;
    std::size_t max_datagram(Rank neighbour) const override;
    bool is_member(Rank rank) const override { return view_.find(rank) != nullptr; }

    // overlay.cpp
    TimePoint latest(TimePoint now);
    const Member& member_at(routing::Position position) const { return view_.members[position]; }
    bool take_arrived(TimePoint now);
    Tunnel& tunnel_to(Rank member);
    bool send_tunnelled(TimePoint now);
    void send(TimePoint now, const port::TunnelPacket& packet);
    bool pump(TimePoint now);

    // overlay_links.cpp
    void look_at_links(TimePoint now);
    bool works(TimePoint now, const Member& neighbour);
    bool is_telling(TimePoint now, TimePoint since);
    void forget(std::map<Rank, Direct>::iterator direct);
    bool exchange_link_states(TimePoint now);
    void assume_broken();

    Engine* engine_;
    port::Carrier* carrier_;
    const port::Signer* signer_;
    Neighbourhood* neighbourhood_;
    OverlayOptions options_;

    TimePoint latest_{};  // the latest time that a call has passed
    View view_{};
    Rank me_{};
    TimePoint grace_ends_{};
    TimePoint longest_grace_ends_{};
    std::unordered_map<NodeId, Rank> ranks_{};
    std::shared_ptr<const routing::Graph> graph_{};
    std::unique_ptr<routing::Routes> routes_{};
    std::unique_ptr<routing::LinkStates> link_states_{};
    std::unique_ptr<routing::Relay> relay_{};
    std::uint64_t seen_links_ = 0;   // Engine::link_changes() that look_at_links() has handled
    std::uint64_t seen_states_ = 0;  // LinkStates::changes()
    bool look_again_ = false;        // whatever seen_links_ says

    std::map<Rank, Direct> direct_{};
    std::map<Rank, TimePoint> failing_{};   // neighbours whose links do not work, since when
    TimePoint tell_at_ = TimePoint::max();  // when one of them has failed for long enough
    std::unordered_map<port::LinkId, Rank> by_link_{};
    std::map<Rank, Tunnel> tunnels_{};
};

}  // namespace nexar::engine

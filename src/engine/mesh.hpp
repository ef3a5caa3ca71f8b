#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/address.hpp"
#include "base/time.hpp"
#include "base/view.hpp"
#include "engine/address_race.hpp"
#include "engine/engine.hpp"
#include "engine/lane_reader.hpp"
#include "engine/mesh_path.hpp"
#include "port/link.hpp"

namespace nexar::engine {

/// Opens links for a mesh.
class Dialer {
public:
    virtual ~Dialer() = default;

    /// Begins a link; Up or Down follows. The handshake checks that the peer is `node`.
    virtual Result<port::LinkId> dial(TimePoint now, const Address& to, const NodeId& node) = 0;

    /// Abandons a link that is not up yet; Down follows.
    virtual void abandon(port::LinkId link) = 0;
};

struct MeshOptions {
    /// Connects to every member immediately; otherwise when something is first sent to it.
    bool eager = true;
    /// When to dial which address of a peer.
    AddressRace::Options race{};
    /// How long the mesh waits for a better address after another one has come up.
    Duration grace = std::chrono::milliseconds(100);
    /// How long a link that does not seem to work has to show the opposite after another one has
    /// come up, at most: the longer that took, the slower are the two ends.
    Duration longest_grace = std::chrono::seconds(1);
    /// How long the member of lower rank waits for the other one to dial before it dials itself,
    /// plus `deference_each` for every member.
    Duration deference = std::chrono::seconds(1);
    Duration deference_each = std::chrono::milliseconds(50);
    /// How long the mesh waits before it replaces a link that broke: usually the peer has ended,
    /// and a view without it follows.
    Duration again = std::chrono::milliseconds(200);
    /// The longest time between attempts to replace a link: as soon as the path works again, the
    /// members go on.
    Duration again_every = std::chrono::milliseconds(500);
    /// Whether a neighbour that does not answer is also dialed through other members, and whether
    /// links move between a direct path and such a tunnel.
    bool tunnels = false;
    /// How long the addresses of a neighbour may take to answer before its tunnel is dialed, plus
    /// `deference_each` for every other neighbour without a link; `again` if the two were connected
    /// before.
    Duration tunnel_after = std::chrono::seconds(1);
    /// How long a link stays in a tunnel before it tries the direct path, at first and at most.
    Duration direct_every = std::chrono::seconds(1);
    Duration direct_longest = std::chrono::seconds(30);
    /// How long a link that does not seem to work may take to move, before the mesh tries if
    /// another one would work; and how long it may still seem not to work after it has moved.
    Duration move_patience = std::chrono::seconds(1);
    Duration settle = std::chrono::milliseconds(500);
    /// The most peers dialed at the same time: with more handshakes than the machine can compute,
    /// each would time out at the other end. A round that takes longer than `slot` no longer
    /// counts.
    std::size_t max_rounds = 4;
    Duration slot = std::chrono::seconds(1);
    /// How long the mesh tries to reach a peer after something was sent to it.
    Duration patience = std::chrono::seconds(30);
    /// Links from nodes that are not in any view yet: how long to keep them, and how many.
    Duration hold = std::chrono::seconds(10);
    std::size_t max_held = 64;
    /// The most links from one member without a Hello: a member that races addresses opens at most
    /// one for each pair of its addresses and ours.
    std::size_t max_offered = 32;
};

/// How a node reached, or tries to reach, one of its peers.
struct PeerReport {
    Rank rank{};
    NodeId node{};
    bool neighbour = true;  // others are connected only when something is sent to them
    bool connected = false;
    bool dialed = false;               // by this side
    bool tunnel = false;               // its link runs through other members now
    std::uint32_t hops = 1;            // links between the two; the node sets it,
    Rank via{};                        // and the first relay
    std::optional<Address> address{};  // the one that won, if this side dialed
    Duration took{};                   // the handshake
    std::string why{};                 // which other addresses were tried, with their outcome
    std::vector<std::string> links{};  // kinds; the node sets them
};

/// Asks a peer that dialed the link of the pair to move it: to the direct path, or to the tunnel.
struct PathRequest {
    NodeId to{};
    bool direct = false;
};

/// Turns a view into links: races the addresses of each member, keeps one link per pair, and gives
/// it to the engine once both ends have greeted each other. Sans-I/O, like the engine.
///
/// It connects to neighbours, and to other members only when something is sent to them, through a
/// tunnel: Address::tunnel(), which other members relay. A link that does not seem to work, or is
/// not where it belongs, moves between the direct path and the tunnel, see MeshPath; nothing is
/// lost. Only if it cannot move is it replaced.
///
/// Both ends may dial. The dialer sends Hello on the link that it chose. The other end answers with
/// Welcome, unless it dials too and has the lower node id: then its own choice counts, and the
/// other link is used only if that one fails. So a pair never ends up with two links, or with none.
///
/// The dialer counts the pair as connected when the Welcome arrives, and sends Confirm; the other
/// end counts it when the Confirm arrives. So when a node that has connected to all peers leaves,
/// each of them knows of its link or will learn of it.
class Mesh {
public:
    /// `engine` and `dialer` must outlive it.
    Mesh(Engine& engine, Dialer& dialer, const MeshOptions& options);
    ~Mesh();
    Mesh(const Mesh&) = delete;
    Mesh& operator=(const Mesh&) = delete;

    /// Sets our own addresses, which show which peers may be on the same host or network.
    void set_addresses(std::vector<Address> own) { own_ = std::move(own); }
    void set_eager(bool eager) { options_.eager = eager; }
    /// See MeshOptions::tunnels. Before the first adopt() only.
    void set_tunnels(bool tunnels) { options_.tunnels = tunnels; }
    /// Sets which members are neighbours of this node from the next adopt() on. nullopt: all.
    void set_neighbours(std::optional<std::vector<NodeId>> neighbours);

    /// Adopts a view that contains `me` and is newer than the previous one.
    void adopt(TimePoint now, const View& view, const NodeId& me);

    /// Returns true when the event belongs to a link that the engine does not have. It must get all
    /// events of links that it dialed or accepted, and before the engine.
    bool handle(TimePoint now, const port::LinkEvent& event);

    /// Handles timers, and peers that the engine wants.
    void turn(TimePoint now);
    std::optional<TimePoint> next_deadline() const;

    /// The next request for a peer, which the owner carries there, or loses.
    std::optional<PathRequest> poll_path_request();
    /// `from` requests that this node moves the link of the pair.
    void on_path_request(TimePoint now, const NodeId& from, bool direct);

    /// True when every neighbour has or had a link.
    bool complete() const noexcept;
    /// A neighbour left before it was connected to this node: the mesh can never be complete.
    const std::optional<Error>& failure() const noexcept { return failure_; }
    std::size_t connected() const noexcept;
    std::vector<PeerReport> reports() const;
    /// Changes whenever reports() does.
    std::uint64_t changes() const noexcept { return changes_; }

    /// Tells peers that are not connected yet that this node leaves, and why. Tunnels of a node
    /// that has left end at once, see Engine::close().
    void close(const Error& why, bool has_left = false);
    bool idle() const noexcept { return candidates_.empty(); }

private:
    struct Candidate;
    struct Way;
    struct Choice;
    struct Outcome;
    class Greeter;

    // mesh.cpp
    void adopt_member(TimePoint now, const Member& member);
    void on_up(TimePoint now, port::LinkId id, port::Link& link);
    void drop(Candidate& candidate, std::string_view why);
    void defer(TimePoint earliest, Way& way);
    void connect_again(TimePoint now, Way& way);
    void take_wanted(TimePoint now);
    void look_at_ways(TimePoint now);
    void drop_late(TimePoint now);
    Way* way_to(const NodeId& node) noexcept;
    bool anything_under_way() const noexcept;
    bool decides(const Way& way) const noexcept;
    bool is_held(const Candidate& candidate) const noexcept;
    void give_up(Way& way, const Error& reason);

    // mesh_dialing.cpp: dialing, and which link is kept
    void begin_round(TimePoint now, Way& way);
    Duration first_tunnel_after() const;
    void dial(TimePoint now, Way& way, const AddressRace::Attempt& attempt);
    void on_dial_failed(TimePoint now, Candidate& candidate, const Error& reason);
    void look_at(TimePoint now, Way& way);
    void look_at_doubted(TimePoint now, Way& way);
    TimePoint grace_ends(const Way& way, const Candidate& best) const;
    void dial_next(TimePoint now, Way& way);
    void end_round(TimePoint now, Way& way);
    void close_others(Way& way, const Candidate* kept, std::string_view why);
    static void note(Way& way, const Address& address, std::string outcome, bool silent = false);
    std::string outcomes(const Way& way) const;
    std::optional<TimePoint> slot_free_at(TimePoint now) const noexcept;
    std::optional<TimePoint> due_of(const Way& way, std::optional<TimePoint> slot) const;
    static Choice choice(const Way& way);

    // mesh_moving.cpp: tunnels, and links that move
    bool is_neighbour(const NodeId& node) const;
    std::vector<Address> direct_addresses(const Member& member) const;
    std::vector<Address> addresses_to_dial(const Way& way) const;
    void redirect(TimePoint now, Way& way);
    bool leave_old_round(TimePoint now, Way& way);
    void doubt(TimePoint now, Way& way);
    void follow(TimePoint now, const port::LinkEvent& event);
    void watch(Candidate& candidate, Way& way);
    void turn_paths(TimePoint now);

    // mesh_greeting.cpp: Hello, Welcome and Confirm
    template <class Message>
    static void greet(Candidate& candidate, const Message& message);
    void attach(Candidate& candidate);
    void say_hello(Candidate& candidate);
    Result<void> on_frame(Candidate& candidate, const wire::FrameHeader& header,
                          port::ConstBytes body);
    Result<void> on_hello(Candidate& candidate, const wire::Hello& hello);
    Result<void> on_welcome(Candidate& candidate, const wire::Welcome& welcome);
    Result<void> on_confirm(Candidate& candidate);
    void on_left(Candidate& candidate, const wire::ErrorReport& report);
    void say_goodbye(Candidate& candidate, const Error& why);
    void consider(Candidate& candidate);
    void welcome(Candidate& candidate, Way& way);
    void hand_over(Candidate& candidate, Way& way);
    void hold(TimePoint now, Candidate& candidate);
    void drop_oldest(std::vector<Candidate*>& held, std::size_t most, std::string_view why);

    Engine* engine_;
    Dialer* dialer_;
    MeshOptions options_;
    std::vector<Address> own_;
    std::optional<std::vector<NodeId>> neighbours_{};  // ascending
    View view_;
    NodeId me_{};
    Rank rank_{};
    TimePoint now_{};  // the time of the current call
    std::map<NodeId, Way> ways_;
    /// By rank, downwards from our own, so every node begins with a different peer: a peer that all
    /// nodes dialed at once would lose packets.
    std::vector<Way*> nearest_first_;
    std::unordered_map<port::LinkId, std::unique_ptr<Candidate>> candidates_;
    std::vector<std::unique_ptr<Candidate>>
        spent_;  // until the current call ends: their readers may be running
    /// The links that the engine has from here, with their peers, until Down.
    std::unordered_map<port::LinkId, NodeId> handed_over_;
    std::deque<PathRequest> requests_;        // at most one for each peer
    TimePoint paths_due_ = TimePoint::max();  // when a MeshPath is due
    std::uint64_t changes_ = 0;
    bool quiet_ = true;  // no attempt is in flight and no timer runs, except paths_due_
    std::optional<Error> failure_{};
    std::optional<Error> closing_{};  // the reason
    bool has_left_ = false;
};

/// A link that the engine has not taken over.
struct Mesh::Candidate {
    enum class State : std::uint8_t {
        dialing,
        up,        // dialed: may be chosen; accepted: no Hello has arrived
        greeted,   // dialed: Hello was sent; accepted: Hello arrived, our own choice is pending
        welcomed,  // accepted: Welcome was sent, Confirm has not arrived
        closing,   // Down will follow
    };

    port::LinkId id{};
    NodeId node{};
    bool dialed = false;
    std::optional<Address> address{};
    std::size_t place = 0;  // among the addresses of the round, best first
    TimePoint begun{};
    TimePoint up_at{};
    State state = State::dialing;
    port::Link* link = nullptr;
    Epoch epoch{};                 // the newest one that the peer knows
    bool confirms = false;         // the peer answers a Welcome
    bool spoken = false;           // the preamble of the control lane was written
    std::uint64_t said_bytes = 0;  // written to the control lane after it
    TimePoint held_until{};  // accepted: while no view contains its node or no Hello has arrived
    std::vector<port::LinkEvent> early{};  // of streams, for the engine
    std::unique_ptr<LaneReader::Taker> taker{};
    std::unique_ptr<LaneReader> reader{};
};

/// The result of dialing an address.
struct Mesh::Outcome {
    Address address{};
    std::string text{};
    bool silent = false;  // it did not answer
};

/// The attempts to reach one peer.
struct Mesh::Way {
    Way(const NodeId& peer, const MeshOptions& options);

    Member member{};
    bool neighbour = false;
    bool wanted = false;     // by the mesh or by the engine
    bool needed = false;     // by the engine
    bool connected = false;  // the engine has its link, or had one and wants no other
    /// Connected, but the link does not seem to work: the mesh tries if another one would.
    bool doubted = false;
    TimePoint connected_at{};
    std::optional<TimePoint> give_up_at{};
    AddressRace race;
    bool redirected = false;  // the round in progress dials where it should not any more
    MeshPath path;
    std::vector<Candidate*> candidates{};  // dialed and accepted
    std::vector<Outcome> outcomes{};       // of addresses that did not win
    PeerReport report{};

    /// The mesh looks for a link to the peer.
    bool open() const noexcept { return wanted && (!connected || doubted); }
};

/// The relevant links of a way; nullptr where there is none.
struct Mesh::Choice {
    Candidate* chosen = nullptr;  // Hello or Welcome was sent on it
    Candidate* best = nullptr;    // of the dialed ones that are up
    Candidate* offer = nullptr;   // the other end sent Hello on it
    bool better_dialing = false;  // an attempt at a better address than `best` is in flight
};

}  // namespace nexar::engine

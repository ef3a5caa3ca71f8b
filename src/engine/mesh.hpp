#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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
#include "port/link.hpp"

namespace nexar::engine {

/// How a mesh reaches others.
class Dialer {
public:
    virtual ~Dialer() = default;

    /// Begins a link to `node`, which is checked inside the handshake; Up or Down follows.
    virtual Result<port::LinkId> dial(TimePoint now, const Address& to, const NodeId& node) = 0;

    /// Gives up a link that is not up yet; Down follows.
    virtual void abandon(port::LinkId link) = 0;
};

struct MeshOptions {
    /// Connects with every member at once; else when something is first sent to it.
    bool eager = true;
    /// When to dial which address of a peer.
    AddressRace::Options race{};
    /// How long a better address may still come up after another one has.
    Duration grace = std::chrono::milliseconds(100);
    /// How long a member of lower rank leaves it to the other to dial, and for each member more.
    Duration deference = std::chrono::seconds(1);
    Duration deference_each = std::chrono::milliseconds(50);
    /// Peers that are dialed at once: more handshakes than the machine can compute only make each
    /// of them last until its end gives up. One that takes longer than `slot` counts no more.
    std::size_t max_rounds = 4;
    Duration slot = std::chrono::seconds(1);
    /// How long a peer is tried when something was sent to it.
    Duration patience = std::chrono::seconds(30);
    /// Links of nodes that no view names yet.
    Duration hold = std::chrono::seconds(10);
    std::size_t max_held = 64;
    /// Links that one member may have begun and not said Hello on: one for each of its addresses
    /// and ours, at most, if it races them.
    std::size_t max_offered = 32;
};

/// What a node knows of the way to one of its peers.
struct PeerReport {
    Rank rank{};
    NodeId node{};
    bool connected = false;
    bool dialed = false;               // by this side
    std::optional<Address> address{};  // that won, when this side dialed
    Duration took{};                   // the handshake
    std::string why{};                 // what else was tried, and what became of it
};

/// Turns a view into links: races the addresses of each member, keeps one link per pair, and gives
/// it to the engine once both ends have greeted each other. Sans-I/O, like the engine.
///
/// Both ends may dial. On a link that it chose the dialer says Hello; the other end answers
/// Welcome, unless it dials too and has the lower node id: then its own choice counts, and the
/// other's waits for it to fail. So a pair never ends up with two links, or with none.
///
/// The dialer counts the pair as connected when the Welcome arrives, and confirms it; the other end
/// counts it when the Confirm arrives. So whoever has connected with all peers and leaves has a
/// link to each of them that the other end knows of, or that will tell it.
class Mesh {
public:
    /// All must outlive it.
    Mesh(Engine& engine, Dialer& dialer, const MeshOptions& options);
    ~Mesh();
    Mesh(const Mesh&) = delete;
    Mesh& operator=(const Mesh&) = delete;

    /// Our own addresses: they tell who may be on the same host or network.
    void set_addresses(std::vector<Address> own) { own_ = std::move(own); }
    void set_eager(bool eager) { options_.eager = eager; }

    /// A view that contains `me` and is newer than the one before.
    void adopt(TimePoint now, const View& view, const NodeId& me);

    /// True when the event was about a link that the engine does not have.
    bool handle(TimePoint now, const port::LinkEvent& event);

    /// Timers, and peers that the engine wants.
    void turn(TimePoint now);
    std::optional<TimePoint> next_deadline() const;

    /// Every peer of the view has a link, or had one.
    bool complete() const noexcept;
    /// A peer left before it was connected with this node: the mesh can never be complete.
    const std::optional<Error>& failure() const noexcept { return failure_; }
    std::size_t connected() const noexcept;
    std::vector<PeerReport> reports() const;
    /// Changes whenever reports() does.
    std::uint64_t changes() const noexcept { return changes_; }

    /// Tells peers that are not connected yet that this node leaves, and why.
    void close(const Error& why);
    bool idle() const noexcept { return candidates_.empty(); }

private:
    struct Candidate;
    struct Way;
    struct Choice;
    struct Outcome;
    class Greeter;

    // mesh.cpp
    void drop(Candidate& candidate, std::string_view why);
    Way* way_to(const NodeId& node) noexcept;
    bool anything_under_way() const noexcept;
    bool decides(const Way& way) const noexcept;
    bool is_held(const Candidate& candidate) const noexcept;
    void give_up(Way& way, const Error& reason);

    // mesh_dialing.cpp: which addresses are tried when
    void begin_round(TimePoint now, Way& way);
    void dial(TimePoint now, Way& way, const AddressRace::Attempt& attempt);
    void on_dial_failed(TimePoint now, Candidate& candidate, const Error& reason);
    void look_at(TimePoint now, Way& way);
    void end_round(TimePoint now, Way& way);
    void close_others(Way& way, const Candidate* kept, std::string_view why);
    static void note(Way& way, const Address& address, std::string outcome, bool silent = false);
    std::string outcomes(const Way& way) const;
    std::optional<TimePoint> slot_free_at(TimePoint now) const noexcept;
    std::optional<TimePoint> due_of(const Way& way, std::optional<TimePoint> slot) const;
    static Choice choice(const Way& way);

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
    View view_;
    NodeId me_{};
    Rank rank_{};
    TimePoint now_{};  // of the call that is being served
    std::map<NodeId, Way> ways_;
    /// By rank, downwards from our own: everybody begins with another peer, for one that all dialed
    /// at once would lose packets of some of them.
    std::vector<Way*> nearest_first_;
    std::unordered_map<port::LinkId, std::unique_ptr<Candidate>> candidates_;
    std::vector<std::unique_ptr<Candidate>> spent_;  // within a call: a reader may still be inside
    std::uint64_t changes_ = 0;
    bool quiet_ = true;  // nothing is under way, and no timer runs
    std::optional<Error> failure_{};
    std::optional<Error> closing_{};  // why
};

/// A link that is not the engine's, or not yet.
struct Mesh::Candidate {
    enum class State : std::uint8_t {
        dialing,
        up,        // dialed: stands ready to be chosen; accepted: has not said Hello
        greeted,   // dialed: Hello was said; accepted: Hello came, and waits for our own choice
        welcomed,  // accepted: Welcome was said, and Confirm has not come
        closing,   // Down will come
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
    Epoch epoch{};           // that it said it knows
    bool confirms = false;   // the peer answers a Welcome
    bool spoken = false;     // the control lane has its preamble
    TimePoint held_until{};  // accepted: while no view names its node or it has not said Hello
    std::unique_ptr<LaneReader::Taker> taker{};
    std::unique_ptr<LaneReader> reader{};
};

/// What became of an address.
struct Mesh::Outcome {
    Address address{};
    std::string text{};
    bool silent = false;  // nothing came from there
};

/// What is under way to one peer.
struct Mesh::Way {
    explicit Way(const AddressRace::Options& options) : race(options) {}

    Member member{};
    bool wanted = false;     // by the mesh or by the engine
    bool connected = false;  // the engine has, or had, its link
    std::optional<TimePoint> give_up_at{};
    AddressRace race;
    std::vector<Candidate*> candidates{};  // dialed and accepted
    std::vector<Outcome> outcomes{};       // of addresses that did not win
    PeerReport report{};
};

/// The links of a way that matter, nullptr where there is none.
struct Mesh::Choice {
    Candidate* chosen = nullptr;  // Hello was said on it, or Welcome
    Candidate* best = nullptr;    // of those that we dialed and that are up
    Candidate* offer = nullptr;   // the other end said Hello on it
    bool better_dialing = false;  // than the best that is up
};

}  // namespace nexar::engine

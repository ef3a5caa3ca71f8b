#pragma once

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/address.hpp"
#include "base/identity.hpp"
#include "base/time.hpp"
#include "port/link.hpp"

namespace nexar::engine {

/// Moves the link of a pair between the direct path and a tunnel, which other members relay.
/// Sans-I/O: the owner reports what becomes of the link, and calls turn() when due() has passed.
///
/// The link of two neighbours belongs on the direct path, that of others in the tunnel. A link that
/// is elsewhere returns: the first attempt follows after `pause`, and the pause doubles with each
/// that fails, and each time that the link has to leave again soon. An attempt tries one address
/// after another. Only the side that dialed a link can move it; the other side asks it to.
class MeshPath {
public:
    struct Options {
        /// False: the link stays where it is.
        bool moves = false;
        Duration pause = std::chrono::seconds(1);
        Duration longest_pause = std::chrono::seconds(30);
        /// A move that has neither succeeded nor failed after this time has failed.
        Duration patience = std::chrono::seconds(5);
        /// A move to the tunnel that fails is tried again for this long.
        Duration insistence = std::chrono::seconds(1);
    };

    MeshPath(const NodeId& peer, const Options& options)
        : options_(options), tunnel_(Address::tunnel(peer.bytes())) {}

    /// Says whether the two are neighbours, and the direct addresses of the peer, best first. A
    /// link that does not belong where it is moves at once.
    void set_home(TimePoint now, bool direct, std::vector<Address> addresses);

    /// This link is used from now on, until end(). It must live as long.
    void begin(TimePoint now, port::Link& link, bool dialed);
    void end() noexcept;
    const port::Link* link() const noexcept { return link_; }
    /// The link runs through relays.
    bool in_tunnel() const noexcept { return link_ != nullptr && in_tunnel_; }

    /// The link does not seem to work where it is: moves it to the other path, or asks the peer to.
    /// Returns false, having done nothing, if there is no other path.
    bool leave(TimePoint now);
    /// The peer asks for such a move: to a direct address, or to the tunnel.
    void asked(TimePoint now, bool direct);
    /// What to ask the peer for, once: true for the direct path.
    std::optional<bool> take_request() noexcept { return std::exchange(request_, {}); }

    // Events of the link.
    void on_changed(TimePoint now, const Address& remote);
    void on_failed(TimePoint now, const Address& remote);
    /// A move has begun, and its end will follow.
    bool moving() const noexcept { return target_.has_value(); }

    void turn(TimePoint now);
    /// When to call turn(); TimePoint::max(): not until something else happens.
    TimePoint due() const noexcept;

private:
    /// Moves that peers ask for begin at most this often.
    static constexpr Duration kBetweenRequests = std::chrono::milliseconds(100);

    bool away() const noexcept { return in_tunnel_ == direct_home_; }
    bool may_move() const noexcept { return options_.moves && link_ != nullptr && movable_; }
    void start(TimePoint now);
    void try_next(TimePoint now);
    void pause(TimePoint now);

    Options options_;
    Address tunnel_;
    bool direct_home_ = true;
    std::vector<Address> addresses_;  // direct ones

    port::Link* link_ = nullptr;
    bool dialed_ = false;
    bool movable_ = false;  // it has an address at all
    bool in_tunnel_ = false;
    TimePoint arrived_at_{};                // where it is now
    std::optional<Address> target_{};       // of the move that has begun
    std::vector<Address> untried_{};        // of the attempt after it, the next one last
    TimePoint started_at_{};                // the last attempt
    TimePoint ends_at_{};                   // of the move that has begun, at the latest
    TimePoint next_at_ = TimePoint::max();  // when to try to return
    Duration pause_{};
    std::optional<bool> request_{};
};

}  // namespace nexar::engine

#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nexar/error.hpp>
#include <nexar/result.hpp>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/identity.hpp"
#include "base/time.hpp"
#include "base/view.hpp"
#include "port/signer.hpp"
#include "routing/allowance.hpp"
#include "wire/routing_messages.hpp"

namespace nexar::routing {

/// The least time between two versions of one member's link state. Changes meanwhile are merged.
inline constexpr Duration kVersionInterval = std::chrono::milliseconds(20);

/// How many signatures are verified per origin, and per neighbour that sends them. States beyond
/// that wait, the newest of each origin.
inline constexpr Duration kOriginInterval = kVersionInterval;
inline constexpr std::int64_t kOriginBurst = 20;
inline constexpr Duration kSenderInterval = std::chrono::milliseconds(2);
inline constexpr std::int64_t kSenderBurst = 200;

/// How fast states go to one neighbour: half of what it verifies, so that an honest neighbour never
/// has to let them wait for long.
inline constexpr Duration kSendInterval = std::chrono::milliseconds(4);
inline constexpr std::int64_t kSendBurst = 64;

/// Origins whose states from one neighbour may wait for their signature to be verified, and as many
/// for a view that has the origin; states of further ones are dropped.
inline constexpr std::size_t kMaxWaiting = 256;

/// The two ends of a link, the lower rank first.
using RankPair = std::pair<Rank, Rank>;

/// The newest link state of each member, flooded along the links of a sparse topology: each new
/// version crosses a link at most once in each direction. States are signed by their origin, so a
/// relay can withhold them but not forge them, and a member can only break links of its own.
///
/// A plain state machine on one thread, without clock and I/O. Call poll_outgoing() until it
/// returns nothing after every other call and whenever next_deadline() is due.
///
/// Memory is bounded by (neighbours x members) versions, one shared state of at most 700 bytes per
/// member, and 2 x kMaxWaiting states per neighbour.
class LinkStates {
public:
    using State = std::shared_ptr<const wire::LinkState>;

    struct Outgoing {
        Rank to{};
        State state{};  // goes on the control lane
    };

    /// `signer` must outlive this.
    LinkStates(const ClusterId& cluster, const port::Signer& signer);

    /// Whether all members are neighbours. Then a state reaches them from its origin, so this node
    /// forwards it only to those that the origin cannot reach.
    void set_complete(bool complete) noexcept { complete_ = complete; }

    /// Begins a view, in which this node has the rank `me`. Views of the same or a lower epoch are
    /// ignored. Forgets members that left. If this node has broken links, it says so again, for the
    /// members that joined.
    void adopt(TimePoint now, const View& view, Rank me);

    /// The neighbours that this node cannot reach, in any order; replaces the previous ones. Only
    /// the first kMaxDownLinks by rank count. Must not contain this node.
    void set_down(TimePoint now, std::span<const Rank> ranks);

    /// A link to a neighbour came up, in both directions: it gets all states that are not empty.
    /// A second call for the same neighbour means that its former link is gone.
    void connected(TimePoint now, Rank neighbour);
    void disconnected(Rank neighbour);

    /// A state from a connected neighbour; from others it is ignored. Fails only if this or an
    /// earlier state from it is one that an honest member would not have forwarded: close the link.
    /// Everything that members may see in different order is dropped silently: old versions,
    /// origins that left, other incarnations.
    Result<void> handle(TimePoint now, Rank from, wire::LinkState state);

    /// Also does what is due.
    std::optional<Outgoing> poll_outgoing(TimePoint now);

    /// When to call poll_outgoing() again at the latest; nullopt: not before the next event.
    std::optional<TimePoint> next_deadline() const;

    /// The pairs of members of which one says that it cannot reach the other, strictly ascending.
    std::vector<RankPair> broken() const;
    /// Grows whenever broken() changes.
    std::uint64_t changes() const noexcept { return changes_; }

private:
    struct Known {
        Incarnation incarnation{};
        std::array<std::byte, 32> key_hash{};
    };
    struct Origin {
        State newest{};
        std::vector<Rank> counted{};  // the other ends of its links in broken_
        Allowance verifications{kOriginInterval, kOriginBurst};
    };
    using Waiting = std::map<Rank, State>;  // by origin
    struct Neighbour {
        std::map<Rank, std::uint64_t> versions{};  // that both ends have of each origin
        std::set<Rank> pending{};                  // origins whose newest state it may need
        Waiting unverified{};                      // until the allowances permit it
        Waiting early{};                           // until a view has the origin
        Allowance verifications{kSenderInterval, kSenderBurst};
        Allowance sending{kSendInterval, kSendBurst};
        std::optional<Error> violation{};
    };

    bool is_current(const wire::LinkState& state) const;
    void forget_the_departed(const std::map<Rank, Known>& before);
    void count_again();

    bool must_publish() const;
    void publish(TimePoint now);

    Result<void> take(TimePoint now, Rank from, const State& state);
    void keep_waiting(Waiting& waiting, const State& state);
    void verify_waiting(TimePoint now);
    void take_all(TimePoint now, Rank from, Waiting Neighbour::* list);
    bool is_genuine(const wire::LinkState& state) const;
    void store(const State& state, Rank from);
    bool forwards(const wire::LinkState& state, Rank to) const;
    void offer(Rank to, Neighbour& neighbour, Rank origin);
    std::optional<Outgoing> next_for(TimePoint now, Rank to, Neighbour& neighbour);

    void count(Rank origin, std::span<const Rank> down);
    void add_pair(Rank a, Rank b);
    void remove_pair(Rank a, Rank b);

    ClusterId cluster_;
    const port::Signer* signer_;
    bool complete_ = false;

    Epoch epoch_{};  // 0: no view yet
    Rank me_{};
    std::map<Rank, Known> members_;

    std::vector<Rank> down_;     // of this node, ascending
    bool is_outdated_ = false;   // what this node published belongs to an earlier view
    std::uint64_t version_ = 0;  // of what it published
    TimePoint may_publish_at_{};

    std::map<Rank, Origin> origins_;
    std::map<Rank, Neighbour> neighbours_;
    std::set<Rank> busy_;                 // neighbours with pending states
    Rank last_served_{};                  // so that neighbours take turns
    std::optional<TimePoint> verify_at_;  // when states that wait for an allowance are due

    std::map<RankPair, unsigned> broken_;  // how many of its ends name the pair
    std::uint64_t changes_ = 0;
};

}  // namespace nexar::routing

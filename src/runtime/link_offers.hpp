#pragma once

#include <cstddef>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/identity.hpp"
#include "base/time.hpp"
#include "base/view.hpp"
#include "engine/engine.hpp"
#include "port/link.hpp"
#include "schedule/links.hpp"

namespace nexar::runtime {

/// Adds links of further kinds to the pairs of a node, over the link that each pair has: the member
/// with the lower node id invites, the other one accepts or says why it cannot. A pair without such
/// a link keeps the one that it has. Each side tells the other when it has the link, and neither
/// uses it before it has heard that: a side that sent something and left at once would otherwise be
/// gone before the other side knew the link.
class LinkOffers {
public:
    explicit LinkOffers(engine::Engine& engine) noexcept : engine_(&engine) {}

    /// Adds a kind; the carrier must outlive this object.
    void add(std::string_view kind, port::Carrier& carrier);
    std::size_t kinds() const noexcept { return kinds_.size(); }

    /// Offers links to the members that may be on the same host. Later views add members, and
    /// remove those whose links are down.
    void begin(TimePoint now, const View& view, const Identity& me, const schedule::Links& links);

    /// Handles an event of one of the carriers after the engine did.
    void handle(TimePoint now, const port::LinkEvent& event);
    void turn(TimePoint now);
    std::optional<TimePoint> next_deadline() const noexcept;

    /// True when every pair that may have a link of every kind uses it or never will.
    bool settled() const noexcept;
    /// The same for the pair with this member.
    bool settled_with(const NodeId& node) const noexcept;
    /// Changes whenever the outcome of an offer is known.
    std::uint64_t changes() const noexcept { return changes_; }
    /// Why the pair with this member has no link of a further kind. Empty if it has one, or it is
    /// not known yet.
    std::string why_not(const NodeId& node) const;
    /// True if the pair with this member uses a link of a further kind.
    bool has_link(const NodeId& node) const noexcept;

private:
    struct Kind {
        std::string name{};
        port::Carrier* carrier = nullptr;
    };
    enum class State : std::uint8_t {
        unconnected,
        waiting,  // for the invitation
        begun,
        up,  // here; the peer has not said that it has it
        used,
        failed,
    };
    /// A pair of nodes and a kind of link.
    struct Offer {
        std::size_t kind = 0;
        Identity peer{};
        bool invites = false;  // this side does
        State state = State::unconnected;
        std::optional<port::LinkId> link{};
        bool peer_ready = false;
        TimePoint until{};  // the latest time for the other side's invitation, or for its LinkReady
        std::string why{};
    };

    void look_at(TimePoint now, Offer& offer);
    void use(Offer& offer);
    void invite(TimePoint now, Offer& offer);
    void take(TimePoint now, const NodeId& from, const wire::LinkOffer& invitation);
    void take(TimePoint now, const NodeId& from, const wire::LinkRefusal& refusal);
    void take(TimePoint now, const NodeId& from, const wire::LinkReady& ready);
    Offer* find(const NodeId& node, std::string_view kind) noexcept;
    void fail(Offer& offer, std::string why);

    engine::Engine* engine_;
    std::vector<Kind> kinds_;
    std::vector<Offer> offers_;
    bool begun_ = false;
    bool quiet_ = true;  // no offer is pending
    std::uint64_t changes_ = 0;
};

}  // namespace nexar::runtime

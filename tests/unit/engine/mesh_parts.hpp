#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/pool_profile.hpp"
#include "engine/mesh.hpp"
#include "support/fake_link.hpp"
#include "support/said.hpp"

/// A mesh whose dials and links the test controls.
namespace nexar::engine {

using nexar::testing::FakeLink;
using nexar::testing::frames_of;
using nexar::testing::operator+;
using nexar::testing::said;
using port::Lane;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Bytes = nexar::testing::Bytes;

inline NodeId node(unsigned number) {
    std::array<std::byte, NodeId::kBytes> bytes{};
    bytes.back() = static_cast<std::byte>(number);
    return NodeId(bytes);
}

inline Address address(std::string_view text) {
    return Address::parse(text).value();
}

inline Identity identity(unsigned number, std::uint64_t incarnation = 1) {
    return {.cluster = {}, .node = node(number), .incarnation = Incarnation(incarnation)};
}

/// Node i has rank i and the addresses `addresses[i]`.
inline View view_of(const std::vector<std::vector<Address>>& addresses, std::uint64_t epoch = 1) {
    View view{.epoch = Epoch(epoch)};
    for (std::uint32_t i = 0; i < addresses.size(); ++i) {
        view.members.push_back({.node = node(i),
                                .incarnation = Incarnation(1),
                                .rank = Rank(i),
                                .addresses = addresses[i]});
    }
    return view;
}

/// Records dials. Each stays in flight until the test brings it up or down.
class FakeDialer final : public Dialer {
public:
    struct Dial {
        port::LinkId id{};
        TimePoint at{};
        Address to{};
        NodeId node{};
    };

    Result<port::LinkId> dial(TimePoint now, const Address& to, const NodeId& node) override {
        if (refuses.contains(to.text())) return Error(Errc::unsupported, "no such network");
        dials.push_back({.id = port::LinkId(next), .at = now, .to = to, .node = node});
        return port::LinkId(next++);
    }
    void abandon(port::LinkId link) override { abandoned.push_back(link); }

    std::vector<Dial> dials{};
    std::vector<port::LinkId> abandoned{};
    std::set<std::string> refuses{};
    std::uint64_t next = 1;
};

/// Node `me` with its engine. The test brings its links up and down.
class MeshNode {
public:
    MeshNode(unsigned me, const View& view, const MeshOptions& options)
        : me_(me), engine_(EngineOptions{}, pool_), mesh_(engine_, dialer_, options) {
        std::vector<NodeId> members;
        for (const Member& member : view.members) members.push_back(member.node);
        world_ = &engine_.add_context(ContextId(7), members, Rank(me));
        engine_.calls().set_world(*world_);
    }

    MeshNode(const MeshNode&) = delete;
    MeshNode& operator=(const MeshNode&) = delete;
    ~MeshNode() {
        close();
        engine_.close();
        for (const auto& [id, link] : links_) down(id);
    }

    void close(std::string why = "the node was closed") {
        mesh_.close(Error(Errc::closed, std::move(why)));
    }
    void adopt(const View& view) { mesh_.adopt(now_, view, node(me_)); }
    TimePoint now() const { return now_; }
    void pass(Duration span) {
        now_ += span;
        mesh_.turn(now_);
    }
    /// Turns the mesh at each deadline until `span` has passed, as an event loop would.
    void run(Duration span) {
        const TimePoint end = now_ + span;
        for (int i = 0; i < 10000; ++i) {
            const auto due = mesh_.next_deadline();
            if (!due || *due > end) break;
            // A deadline that stays in the past would make an event loop spin.
            stuck_ = *due <= now_ ? stuck_ + 1 : 0;
            NEXAR_ASSERT(stuck_ < 3, "the deadline does not move");
            now_ = std::max(now_, *due);
            mesh_.turn(now_);
        }
        now_ = end;
        mesh_.turn(now_);
    }

    /// Brings up a link to `peer`. Ids from 1000 on are accepted links, the others were dialed.
    FakeLink& up(port::LinkId id, const Identity& peer, const Address& from = {}) {
        auto& link = links_[id];
        link = std::make_unique<FakeLink>(id, peer);
        link->address = from;
        for (const auto& dial : dialer_.dials) {
            if (dial.id == id) link->address = dial.to;
        }
        handle({.link = id, .what = port::Up{.link = link.get(), .dialed = id.value() < 1000}});
        return *link;
    }
    FakeLink& accept(const Identity& peer, const Address& from = {}) {
        return up(port::LinkId(next_accepted_++), peer, from);
    }
    /// The link has moved: the peer answered at `to`.
    void moves(FakeLink& link, const Address& to) {
        link.address = to;
        handle({.link = link.id(), .what = port::PathChanged{to}});
    }
    /// The peer did not answer at `to`.
    void fails_to_move(FakeLink& link, const Address& to) {
        handle({.link = link.id(), .what = port::PathFailed{to}});
    }
    void down(port::LinkId id, const char* why = "no answer") {
        if (!gone_.insert(id).second) return;
        handle({.link = id, .what = port::Down{.reason = Error(Errc::link_closed, why)}});
    }
    void handle(const port::LinkEvent& event) {
        if (!mesh_.handle(now_, event)) engine_.handle(event);
        mesh_.turn(now_);
    }
    /// Delivers the first message from the other end, with the preamble of the lane.
    template <class Message>
    void hears(FakeLink& link, const Message& message) {
        link.arrive(
            Lane::control,
            said(wire::Preamble{.lane = wire::Lane::control, .context = {}, .sequence = {}}) +
                said(message));
        mesh_.turn(now_);
    }
    void hears_hello(FakeLink& link, std::uint64_t epoch = 1) {
        hears(link,
              wire::Hello{
                  .features = wire::kFeatureConfirm, .epoch = Epoch(epoch), .software = "test"});
    }
    void hears_welcome(FakeLink& link, Rank rank) {
        hears(link, wire::Welcome{.features = wire::kFeatureConfirm,
                                  .epoch = Epoch(1),
                                  .rank = rank,
                                  .world_size = 16});
    }
    /// Delivers a message after the first one.
    template <class Message>
    void hears_next(FakeLink& link, const Message& message) {
        link.arrive(Lane::control, said(message));
        mesh_.turn(now_);
    }
    void hears_confirm(FakeLink& link) { hears_next(link, wire::Confirm{.epoch = Epoch(1)}); }

    Mesh& mesh() { return mesh_; }
    Engine& engine() { return engine_; }
    Context& world() { return *world_; }
    FakeDialer& dialer() { return dialer_; }
    const std::vector<FakeDialer::Dial>& dials() const { return dialer_.dials; }
    PeerReport report(std::size_t index = 0) const { return mesh_.reports().at(index); }

private:
    unsigned me_;
    TimePoint now_ = TimePoint(seconds(100));
    BufferPool pool_{PoolProfile::inference()};
    FakeDialer dialer_;
    std::map<port::LinkId, std::unique_ptr<FakeLink>> links_;
    std::set<port::LinkId> gone_;
    Engine engine_;
    Mesh mesh_;
    Context* world_ = nullptr;
    std::uint64_t next_accepted_ = 1000;
    int stuck_ = 0;
};

inline bool said_hello(const FakeLink& link) {
    const auto& bytes = link.written(Lane::control);
    return !bytes.empty() && !frames_of<wire::Hello>(bytes).empty();
}
inline bool said_welcome(const FakeLink& link) {
    const auto& bytes = link.written(Lane::control);
    return !bytes.empty() && !frames_of<wire::Welcome>(bytes).empty();
}

inline bool said_confirm(const FakeLink& link) {
    const auto& bytes = link.written(Lane::control);
    return !bytes.empty() && !frames_of<wire::Confirm>(bytes).empty();
}

}  // namespace nexar::engine

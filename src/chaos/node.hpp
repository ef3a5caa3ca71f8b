#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/buffer_pool.hpp"
#include "base/config.hpp"
#include "base/random.hpp"
#include "engine/engine.hpp"
#include "engine/mesh.hpp"
#include "engine/overlay.hpp"
#include "link/sim/datagram_net.hpp"
#include "runtime/join/seed_line.hpp"
#include "runtime/members/node_members.hpp"
#include "runtime/members/parting.hpp"
#include "runtime/members/succession.hpp"
#include "security/link_state_signer.hpp"

namespace nexar::chaos {

/// The program that runs on a node. The node calls it in its turns.
class Program {
public:
    virtual ~Program() = default;

    /// The node adopted a view.
    virtual void viewed(const View& view) = 0;
    /// All members that could take it into a world are gone.
    virtual void left_behind() = 0;
    /// The first world of this node.
    virtual void entered(engine::Context& world, const std::vector<NodeId>& nodes) = 0;
    virtual void ended(engine::Operation& operation) = 0;
    /// At the end of each turn.
    virtual void turned(TimePoint now) = 0;
    virtual std::optional<TimePoint> next_deadline() const = 0;
};

/// A node whose process runs on virtual time: what detail::NodeBody is for users, without threads,
/// shared memory and remote procedure calls.
class Node final : public sim::Actor, private engine::Dialer {
public:
    struct Setup {
        Address address{};
        runtime::JoinTerms terms{};
        Config config;
        Random random;
    };

    Node(sim::DatagramNet& net, Setup setup, Program& program);
    /// As if its process were killed: nothing that it has not sent is sent.
    ~Node() override;

    void turn(TimePoint now) override;
    std::optional<TimePoint> next_deadline() const override;

    engine::Engine& engine() noexcept { return engine_; }
    runtime::NodeMembers& members() noexcept { return members_; }
    const runtime::NodeMembers& members() const noexcept { return members_; }
    sim::DatagramHost& host() noexcept { return *host_; }
    /// Valid once it has a view.
    const Identity& self() const noexcept { return identity_; }
    bool admitted() const noexcept { return admitted_; }
    /// Why the process cannot join.
    const std::optional<Error>& failure() const noexcept { return failure_; }

    /// Makes the communicator that follows `parent`, and offers it to those that join.
    engine::Context& make_world(engine::Context& parent, const runtime::Successor& next);
    /// See NodeBody::epoch_with_others().
    std::uint64_t epoch_with_others(const engine::Context& context);

    /// The part that wants another turn at once although it had very many at this time; empty:
    /// none. A real node would use all of a processor.
    std::string_view spinning() const;

    /// Leaves the cluster and closes the node, as Node::close() does for users.
    void close(TimePoint now);
    /// True when a closed node has nothing left to do.
    bool closed() const noexcept;

private:
    Node(sim::DatagramNet& net, Setup setup, Program& program, security::KeyPair key);

    // engine::Dialer
    Result<port::LinkId> dial(TimePoint now, const Address& to, const NodeId& node) override;
    void abandon(port::LinkId link) override { host_->abandon(link); }

    bool tell_ended();
    void take_events(TimePoint now);
    void follow_seed(TimePoint now);
    void take_admission(const runtime::Admitted& admitted);
    void take_view(TimePoint now, const View& view);
    Result<void> make_overlay();
    void connect(TimePoint now, const View& view);
    void carry_path_requests(TimePoint now);
    void follow_members(TimePoint now);
    void take_new_world();
    void leave(TimePoint now);
    void follow_closing(TimePoint now);
    const engine::Neighbourhood* neighbourhood() const noexcept {
        return neighbourhood_ ? &*neighbourhood_ : nullptr;
    }
    void set_members(schedule::Profile& profile, std::span<const NodeId> nodes) const;
    engine::Context& make_context(std::span<const NodeId> nodes, std::size_t me,
                                  const wire::ContextOrigin& origin,
                                  const schedule::Profile& profile);

    sim::DatagramNet* net_;
    Program* program_;
    Config config_;
    sim::DatagramHost* host_;
    engine::Engine engine_;
    engine::Mesh mesh_;
    security::LinkStateSigner signer_;
    std::optional<engine::Neighbourhood> neighbourhood_;
    std::unique_ptr<engine::Overlay> overlay_;
    runtime::NodeMembers members_;
    runtime::SeedLine seed_;
    runtime::Readiness readiness_;
    std::map<port::LinkId, port::Link*> links_;
    Identity identity_{};
    bool admitted_ = false;
    bool late_ = false;
    std::uint32_t first_world_ = 0;
    bool has_world_ = false;
    std::optional<Error> failure_{};
    std::optional<runtime::Parting> parting_{};
    std::optional<TimePoint> leave_by_{};
    bool closing_ = false;
    TimePoint turned_at_{};
    unsigned turns_ = 0;  // at that time
};

}  // namespace nexar::chaos

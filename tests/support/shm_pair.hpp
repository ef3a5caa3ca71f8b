#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "link/shm/carrier.hpp"
#include "link/sim/fabric.hpp"
#include "support/link_end.hpp"

/// Shared-memory links between two carriers of one process, over real memory and real sockets, on
/// virtual time.
namespace nexar::testing {

/// Drives a carrier as a node that sleeps whenever nothing is due. It notices an arrival 50 us of
/// virtual time later, so that a test can act before the peer answers.
class ShmNode final : public sim::NodeCarrier {
public:
    static constexpr Duration kNoticesAfter = std::chrono::microseconds(50);

    ShmNode(sim::World& world, const Identity& identity, const shm::LinkOptions& options);

    /// The node that dial() reaches.
    void set_peer(ShmNode& peer) noexcept { peer_ = &peer; }
    const Identity& identity() const noexcept { return identity_; }
    shm::Carrier& carrier() noexcept { return *carrier_; }

    void driven_by(sim::Actor& actor) override;
    bool wants_write() const noexcept override { return carrier_->wants_write(); }
    bool on_ready(TimePoint now) override;
    void flush(TimePoint now) override { carrier_->flush(now); }
    bool flush_is_urgent(TimePoint now) const noexcept override {
        return carrier_->flush_is_urgent(now);
    }
    std::optional<TimePoint> next_deadline() const override;
    std::optional<port::LinkEvent> poll_event() override;
    void forget(port::LinkId link) override { carrier_->forget(link); }
    void abandon(port::LinkId link) override { carrier_->abandon(link); }
    void set_members(std::span<const Address> members) override { carrier_->set_members(members); }
    void set_crowded(bool crowded) noexcept override { carrier_->set_crowded(crowded); }

    /// Invites the peer, which accepts at once. For a node that is not the peer, somebody else gets
    /// hold of the socket's name, but does not know the nonce.
    Result<port::LinkId> dial(TimePoint now, const port::DialTarget& target) override;

private:
    Identity identity_;
    std::unique_ptr<shm::Carrier> carrier_;
    ShmNode* peer_ = nullptr;
    std::set<std::uint64_t> not_up_;  // links that this node accepted
    mutable std::optional<TimePoint> notices_at_{};
};

/// Two nodes, and a link after connect().
class ShmPair {
public:
    explicit ShmPair(const shm::LinkOptions& options = {});

    LinkEnd& dial();
    bool connect();
    LinkEnd& client() noexcept { return *client_; }
    LinkEnd& server() { return server_side.accepted(); }
    bool run_until(const std::function<bool()>& done, Duration at_most = std::chrono::seconds(60)) {
        return world.run_until(done, at_most);
    }

    sim::World world;
    ShmNode a;
    ShmNode b;
    CarrierSide client_side;
    CarrierSide server_side;

private:
    LinkEnd* client_ = nullptr;
};

}  // namespace nexar::testing

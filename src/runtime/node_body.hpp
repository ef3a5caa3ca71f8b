#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <nexar/communicator.hpp>
#include <nexar/node.hpp>
#include <optional>
#include <span>
#include <vector>

#include "base/bounded_queue.hpp"
#include "base/buffer_pool.hpp"
#include "base/config.hpp"
#include "base/recorder.hpp"
#include "base/view.hpp"
#include "engine/engine.hpp"
#include "engine/mesh.hpp"
#include "engine/overlay.hpp"
#include "link/common/carrier_options.hpp"
#include "port/link.hpp"
#include "port/signer.hpp"
#include "runtime/join/host_services.hpp"
#include "runtime/join/seed_line.hpp"
#include "runtime/link_offers.hpp"
#include "runtime/members/node_members.hpp"
#include "runtime/members/succession.hpp"
#include "runtime/owned_context.hpp"
#include "runtime/progress.hpp"
#include "runtime/rpc_service.hpp"
#include "runtime/task.hpp"
#include "security/credentials.hpp"

namespace nexar::runtime {

/// A loop and the number of nodes on it. The last node to close stops the loop.
struct Loop {
    std::unique_ptr<Progress> progress{};
    std::atomic<int> nodes = 0;
};

Result<std::shared_ptr<Loop>> make_loop(const NodeOptions& options);

}  // namespace nexar::runtime

namespace nexar::detail {

class CommunicatorBody;
class NodeBody;
class SeedBody;

/// A node: its engine, its links, and the loop that drives both.
class NodeBody final : public runtime::Driven,
                       public std::enable_shared_from_this<NodeBody>,
                       private engine::Dialer {
public:
    struct Setup {
        /// Null before a join.
        std::shared_ptr<const security::Credentials> credentials{};
        /// Has the key of the credentials. Null before a join.
        std::shared_ptr<const port::Signer> signer{};
        Address listen{};
        NodeOptions options{};
        link::LinkSettings link{};
        std::optional<Config> config{};
        engine::MeshOptions mesh{};
        runtime::HostServices services = runtime::HostServices::of_this_machine();
    };

    /// Opens a node that listens; it is not connected to any peer yet.
    static Result<std::shared_ptr<NodeBody>> open(std::shared_ptr<runtime::Loop> loop,
                                                  const Setup& setup);
    ~NodeBody() override;

    /// Starts to join through a seed; wait_formed() waits for the outcome.
    Result<void> join(runtime::JoinTerms terms);
    /// Becomes a member of a world whose view is known already.
    void form(const View& view);
    /// Waits until all members are connected.
    Result<void> wait_formed(TimePoint deadline);

    std::vector<engine::PeerReport> peers();

    /// Keeps the seed that a launched job hosts in this process until the node closes.
    void accompany(std::shared_ptr<SeedBody> seed) { companion_ = std::move(seed); }

    Address address() const noexcept { return first().local(); }
    runtime::Progress& progress() noexcept { return *loop_->progress; }

    // members/node_membership.cpp
    /// The newest world. On a node that has joined a running cluster, waits until the others have
    /// taken it in.
    std::shared_ptr<OwnedContext> world();
    /// Makes a communicator the newest world, unless another one has taken the place of `old`.
    void replace_world(const engine::Context& old, std::shared_ptr<OwnedContext> made);
    View view();
    /// Waits until `ready` returns true, which is called under the lock. Returns false if the
    /// deadline passed or the node closed.
    bool wait_for(const std::function<bool()>& ready, TimePoint deadline);
    /// Waits until this node knows the view of that epoch, or a later one.
    void wait_view(Epoch epoch);
    /// The node of a member. Throws if it never was one, or was one long ago.
    NodeId member(Rank rank, const char* operation);
    /// Under the lock: the nodes of these members of the view of an epoch.
    std::vector<NodeId> nodes_of(std::span<const Rank> members, Epoch epoch) const;
    /// The members of the view of an epoch that wait to be taken into a communicator, ascending.
    std::vector<Rank> members_beyond(const engine::Context& context, Epoch epoch);
    /// Under the lock: see runtime::newcomers_after().
    Rank newcomers_after(std::span<const NodeId> nodes) const noexcept;
    /// Under the lock: the rank in the cluster of a node that is or was a member; -1 if it is not
    /// known any more.
    int member_rank(const NodeId& node) const noexcept;
    struct Offer {
        std::span<const NodeId> joiners{};
        std::span<const NodeId> members{};  // by rank
        std::uint32_t senders = 0;          // ranks 0, 1, ... that send the application's state
    };
    /// Under the lock: tells nodes that have joined that this communicator is their world.
    void offer_world(engine::Engine& engine, const Offer& offer, const engine::Context& made);
    /// Waits until what was sent through tunnels has arrived, and lets the others agree that this
    /// node leaves, so that they need not wait for its vote again. Waits for both, but not for
    /// long.
    void leave_cluster();
    /// Waits until these ranks of a communicator have left the cluster, but not for long.
    void wait_left(const engine::Context& context, std::span<const Rank> ranks);

    // members/node_hooks.cpp
    StateHooks state_hooks();
    void set_state_hooks(StateHooks hooks);
    /// How many members send the application's state to those that join.
    std::uint32_t state_senders();
    /// How many members send the state to this node. Returns it once.
    std::uint32_t take_state_senders();
    /// Who wants to be called when the list of failures grows: the program, and the policy.
    enum class Listener : std::uint8_t { user, recovery };
    /// Returns a number that failure_callback() needs; a later call makes it invalid.
    std::uint64_t set_failure_callback(Listener listener,
                                       std::function<void(const std::vector<int>&)> callback);
    std::function<void(const std::vector<int>&)> failure_callback(Listener listener,
                                                                  std::uint64_t generation);
    void set_leaving();
    bool leaving();
    /// Returns how many of the failures the policy need not look at any more.
    std::size_t set_recovery(Recovery policy);
    /// Applies the setting `recovery`; `node` is this one.
    void follow_recovery_setting(const Node& node) const;
    /// Returns false if somebody else recovers the world now, or will: a checkpoint that runs here
    /// may replace the world itself, and looks at its end whether it has.
    bool begin_recovery();
    /// The newest world if it has lost a member, and nobody has given up on it. Otherwise returns
    /// nullptr, and the recovery has ended. All ranks of a world decide alike, no matter in how
    /// many steps they learn of failures.
    std::shared_ptr<OwnedContext> world_to_recover();
    /// The world stays as it is.
    void give_up_on(const OwnedContext& world);
    void begin_checkpoint();
    /// Returns what recovers the world, if that is necessary now.
    std::function<void(const std::vector<int>&)> end_checkpoint();
    /// What recovers the world, if that is due and `wanted`.
    std::function<void(const std::vector<int>&)> take_recovery(bool wanted);
    bool has_broken_world();
    /// The epoch of the newest view, if it has members that wait to be taken into this communicator
    /// and this node has its links to them, or has waited for them long enough; else 0.
    std::uint64_t epoch_with_others(const engine::Context& context);

    /// Under the lock: fills in the links and the hops between nodes that are or were members.
    void set_members(schedule::Profile& profile, std::span<const NodeId> nodes) const;
    Rank public_own_rank();
    /// Under the lock: the rank of this node in the cluster.
    Rank own_rank() const noexcept;
    std::vector<int> failed();
    /// Under the lock: the newest world has lost a member.
    bool world_is_broken() const noexcept;
    bool expects_recovery() const noexcept;
    bool recovery_is_due() const noexcept;
    bool is_left_behind() const noexcept;
    /// Under the lock: completes the task when more than `task.known` members have failed.
    void start_failures(Task& task);
    void cancel_failures(Task& task);
    const ClusterId& cluster() const noexcept { return identity_.cluster; }
    const NodeId& id() const noexcept { return identity_.node; }
    /// The last events of this node, see EventKind.
    const Recorder& recorder() const noexcept { return recorder_; }
    Duration collective_timeout() const noexcept { return collective_timeout_; }
    /// The fewest ranks of a communicator that takes the place of another one.
    std::size_t min_world() const;

    /// Sends a small message without a task. Returns false, having done nothing, if that is not
    /// possible now.
    bool send_at_once(engine::Context& context, Rank to, Tag tag, port::ConstBytes content);
    /// Under the lock, in the thread that made the task and still has it.
    void start_by_poster(Task& task) noexcept;

    TaskOwner make_task(std::shared_ptr<CommunicatorBody> communicator);
    void keep(Task* task) noexcept;

    // node_formation.cpp
    /// Under the lock: makes a communicator of these nodes; this one is at `me`.
    engine::Context& make_context(std::span<const NodeId> nodes, std::size_t me,
                                  const wire::ContextOrigin& origin,
                                  const schedule::Profile& profile);
    void share_memory(engine::Context& context);
    /// Under the lock: memory that peers can read. Errc::unsupported where there is none.
    Result<std::shared_ptr<port::SharedMemory>> allocate_buffer(std::size_t bytes);

    TimePoint now() const noexcept { return clock_.now(); }
    /// True after close() was called. Any thread.
    bool closing() const noexcept { return closing_.load(std::memory_order_relaxed); }

    // node_abort.cpp
    /// Communicator::abort(). Returns only where the setting on_abort is `error`.
    void abort(int code, const std::string& why);
    /// Under the lock: after an abort, throws the error that every operation ends with.
    void check_not_aborted(const char* operation) const;

    // node_rpc.cpp
    /// Throws if the function cannot be served.
    std::shared_ptr<ServedFunction> serve(std::shared_ptr<ServedFunction> function);
    /// Under the lock: passes on the result of a served function.
    void respond(engine::InCall& call, Result<Payload> result) noexcept;
    /// After the first serve().
    RpcService& rpc() noexcept { return *rpc_; }

    /// Ends a context without pending operations.
    void end(engine::Context& context) noexcept;

    void close();

    /// For the owner of the last handle: closes the node, unless this process is a forked child.
    /// The node then belongs to the parent, and nothing happens to it.
    static void let_go(std::shared_ptr<NodeBody> body);

    std::span<port::Carrier* const> carriers() const noexcept override { return carriers_; }
    bool turn(TimePoint now) noexcept override;
    bool look(TimePoint now) noexcept override;
    bool fall_asleep() noexcept override;
    std::optional<TimePoint> next_deadline() const noexcept override;

private:
    friend class NodeAccess;

    NodeBody(std::shared_ptr<runtime::Loop> loop, const Setup& setup);

    /// Under the lock, after a call of the engine: sends what can be sent and completes the
    /// operations that ended. NodeAccess does this for callers.
    void settle(TimePoint now) noexcept;

    // engine::Dialer
    Result<port::LinkId> dial(TimePoint now, const Address& to, const NodeId& node) override;
    void abandon(port::LinkId link) override;

    void tell_seed_of(const wire::Abort& frame);
    void look_at_abort();
    [[noreturn]] void end_process(int status);
    void begin_closing();

    port::Carrier& first() const noexcept { return *carriers_.front(); }
    bool on_ready(TimePoint now);
    void flush(TimePoint now);
    bool flush_unsent(TimePoint now);
    void look_at_once(const engine::CollectiveOperation& operation) noexcept;
    Result<std::shared_ptr<port::SharedMemory>> allocate_shared(std::size_t bytes);
    bool finish_turn(TimePoint now);
    bool take_events(TimePoint now);
    bool take_further_events(TimePoint now);
    std::string_view link_choice() const;
    std::vector<engine::PeerReport> reports() const;
    bool allows_further_links() const;
    void require_links();
    void follow_seed(TimePoint now);
    Result<void> take_admission(const runtime::Admitted& admitted);
    Result<schedule::Profile> make_profile(std::span<const Member> members);
    void count_local_ranks(const View& view);
    void take_view(TimePoint now, const View& view);
    Result<void> make_overlay(std::size_t members);
    const engine::Neighbourhood* neighbourhood() const noexcept {
        return neighbourhood_ ? &*neighbourhood_ : nullptr;
    }
    void connect(TimePoint now, const View& view);
    void carry_path_requests(TimePoint now);
    void tell_seed();
    void fail_formation(const Error& error);
    std::string what_is_missing() const;
    void look_for_casualties();
    bool all_idle() const noexcept;
    bool tell_ended();
    std::optional<TimePoint> own_deadline() const noexcept;
    void advance_calls(TimePoint now);
    bool dispatch_calls(TimePoint now);
    void close_calls();
    void look_whether_formed();

    // members/node_membership.cpp
    void begin_membership(TimePoint now, const View& view);
    void follow_members(TimePoint now);
    void take_decided(TimePoint now, const membership::Decided& decided);
    void take_new_worlds();
    void tell_failures();
    void look_at_waiters();
    void end_failures(const Error& reason);
    void complete(Task& task);

    SteadyClock clock_;
    std::shared_ptr<runtime::Loop> loop_;
    BufferPool pool_;
    Recorder recorder_;
    /// The first one connects members and seeds; links of the others are set up over it.
    std::vector<std::unique_ptr<port::Carrier>> owned_carriers_;
    std::vector<port::Carrier*> carriers_;
    engine::Engine engine_;
    engine::Mesh mesh_;
    std::shared_ptr<const port::Signer> signer_;
    std::optional<engine::Neighbourhood> neighbourhood_;
    std::unique_ptr<engine::Overlay> overlay_;
    runtime::LinkOffers offers_;
    runtime::NodeMembers membership_;
    bool looks_at_once_;
    TimePoint first_looked_{};  // when this node last looked at the first carrier
    TimePoint first_active_{};  // when it last sent or received something
    bool first_came_ = false;   // something arrived on it since look() cleared this
    bool slept_ = false;        // since this node last looked at it
    std::unique_ptr<runtime::SeedLine> seed_;
    std::shared_ptr<SeedBody> companion_;
    std::optional<Config> config_;
    Identity identity_{};
    Duration collective_timeout_ = std::chrono::minutes(30);
    bool lazy_ = false;
    std::uint64_t told_changes_ = 0;
    std::shared_ptr<OwnedContext> world_;
    std::uint32_t first_world_ = 0;    // ranks below it are in the world that forms first
    bool late_ = false;                // this node has joined a running cluster
    std::uint32_t senders_ = 0;        // members that send the state to this node
    std::uint32_t state_senders_ = 0;  // members, including this one, that send it to others
    std::vector<int> failed_;
    runtime::Readiness readiness_;
    std::vector<Task*> failure_waiters_;
    struct Waiter {
        const std::function<bool()>* ready = nullptr;
        runtime::Completion* completion = nullptr;
    };
    std::vector<Waiter*> waiters_;
    StateHooks state_hooks_;
    struct FailureCallback {
        std::function<void(const std::vector<int>&)> callback{};
        std::uint64_t generation = 0;
    };
    std::array<FailureCallback, 2> failure_callbacks_;  // by Listener
    bool leaving_ = false;
    Recovery recovery_ = Recovery::manual;
    bool recovering_ = false;  // the world has lost a member and is being shrunk
    bool recovery_runs_ = false;
    int checkpoints_ = 0;                     // that agree on a new world now
    const OwnedContext* given_up_ = nullptr;  // the world that cannot be recovered
    BoundedQueue<Task*> spare_tasks_{1024};
    NodeOptions options_;
    runtime::HostServices services_;
    std::unique_ptr<RpcService> rpc_{};

    std::optional<Error> formation_failure_{};
    bool formed_told_ = false;
    runtime::Completion formed_;
    std::atomic<bool> closing_ = false;
    bool started_more_ = false;  // while operations completed: settle() must run again
    bool closed_ = false;
    bool idle_told_ = false;
    runtime::Completion idle_;

    // The steps that abort() waits for.
    bool leaving_seed_ = false;
    bool seed_left_told_ = false;
    runtime::Completion seed_left_;
    bool telling_ = false;
    bool told_told_ = false;
    runtime::Completion told_;
};

/// A communicator of a node; its pending operations keep it alive.
class CommunicatorBody {
public:
    CommunicatorBody(std::shared_ptr<NodeBody> owner, std::shared_ptr<OwnedContext> owned) noexcept
        : node(std::move(owner)), context(&owned->context()), owned_(std::move(owned)) {}
    /// For tasks of a node that need no communicator.
    explicit CommunicatorBody(std::shared_ptr<NodeBody> owner) noexcept
        : node(std::move(owner)), context(nullptr) {}

    const std::shared_ptr<NodeBody> node;
    engine::Context* const context;

    const std::shared_ptr<OwnedContext>& owned() const noexcept { return owned_; }

private:
    std::shared_ptr<OwnedContext> owned_;  // released before `node`, which it needs
};

}  // namespace nexar::detail

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/communicator.hpp>
#include <nexar/export.hpp>
#include <nexar/membership.hpp>
#include <nexar/rpc.hpp>
#include <nexar/shared_buffer.hpp>
#include <optional>
#include <string>
#include <vector>

namespace nexar {

namespace detail {
class NodeBody;
}

/// What makes progress while no thread waits for a Work.
enum class Progressing : std::uint8_t {
    background,  // a background thread of nexar
    user_loop,   // the user's own loop, see Node::descriptor()
};

/// What a thread does while it waits for a Work.
enum class Waiting : std::uint8_t {
    automatic,  // polls for a while, then sleeps; sleeps sooner if ranks outnumber processors
    spin,       // polls all the time, but lets other threads run if ranks outnumber processors
    sleep,      // sleeps at once
};

struct NodeOptions {
    Progressing progressing = Progressing::background;
    /// Maximum number of pending operations; further ones fail with Errc::too_many_pending.
    std::size_t max_pending = std::size_t{1} << 20U;
    /// If set, overrides the setting `progress`; automatic for nodes that do not read settings.
    std::optional<Waiting> waiting{};
    /// How long a waiting thread polls before it sleeps. If set, overrides the setting `spin`, of
    /// which nodes that do not read settings use the default.
    std::optional<std::chrono::nanoseconds> spin{};
    /// Sends data unencrypted, for a network that nobody else can reach; peers are still
    /// authenticated.
    bool unprotected = false;
    RpcOptions rpc{};
    /// Same as the setting collective_algorithm, for nodes that do not read settings.
    std::string collective_algorithm{};
    /// Same as the setting topology, for nodes that do not read settings.
    std::string topology{};
    /// Same as the setting link, for nodes that do not read settings: auto, quic or shm.
    std::string link{};
};

/// The connection to another member.
struct PeerLink {
    int rank = 0;
    bool connected = false;
    bool dialed = false;                   // true: this node dialed; false: the peer did
    int hops = 1;                          // links between the two; 1: connected directly
    int via = -1;                          // rank of the first relay; -1: none
    std::string address{};                 // the address that was used, if this node dialed
    std::chrono::nanoseconds handshake{};  // its duration, if this node dialed
    std::string why{};                     // other attempts and their outcome
    std::vector<std::string> links{};      // kinds of links in use: quic, shm
};

/// This process's membership in a cluster. Destroying the last handle closes it. Any thread may
/// call. A forked child cannot use it: every call there fails with Errc::forked, and destroying it
/// in the child does not affect the parent's node.
class NEXAR_EXPORT Node {
public:
    explicit Node(std::shared_ptr<detail::NodeBody> body) noexcept;
    Node(Node&&) noexcept;
    Node& operator=(Node&&) noexcept;
    ~Node();

    /// The newest world: at first the communicator of all members; later the one that
    /// Communicator::shrink(), rebuild_excluding(), grow(), rebuild_adding() or
    /// elastic_checkpoint() made from it. In a process that has joined a running cluster, the first
    /// call waits until the others have called one of the last three; it throws
    /// Errc::membership_changed if all that could do so are lost, and Errc::timed_out after the
    /// setting collective_timeout.
    Communicator world() const;

    // Members that come and go. docs/membership.md explains them.

    /// The rank of this process in the cluster; see nexar/membership.hpp.
    int rank() const;
    /// The ranks of all members, ascending, and the epoch in which the members agreed on them.
    std::vector<int> members() const;
    std::uint64_t epoch() const;

    Failures failures() const { return Failures(body_); }

    /// A point at which the world may change. Every rank of the world must call it, at the same
    /// place of the program: processes that have joined meanwhile are taken in, and ranks that have
    /// called leave() are let go. Returns nullopt if nothing has changed; that costs one barrier.
    std::optional<WorldChange> elastic_checkpoint() const;
    /// Asks to leave: the next elastic_checkpoint() makes a world without this rank, and this
    /// process is not a member of the cluster any more.
    void leave() const;
    /// Sets what carries the application's state to processes that join.
    void on_join(StateHooks hooks) const;
    /// Overrides the setting `recovery`. With Recovery::automatic, calls `on_change` after the
    /// world has shrunk, on the thread that makes progress; programs then do not call shrink() on
    /// the world themselves.
    void recover(Recovery policy, std::function<void(const WorldChange&)> on_change = {}) const;

    /// Elements, all zero, in memory that the other ranks of this host can read in place; see
    /// SharedBuffer. Where the node has no shared memory with other ranks, this is ordinary memory.
    /// Throws Errc::out_of_memory. Local: the ranks need not call it together.
    template <class T>
    SharedBuffer<T> allocate(std::size_t count) const {
        return SharedBuffer<T>(body_, count);
    }

    // Remote procedure calls between members, by their rank in the cluster; Communicator::call()
    // calls by rank in a communicator. A call that arrives before the
    // function is served fails with Errc::unknown_function: serve first, then tell the callers.

    /// Lets members call `function`: R(), R(const Call&), R(T) or R(const Call&, T). T is a
    /// trivially copyable value, std::string, std::vector, std::span or std::string_view; R is one
    /// of these except views, or void. If the function throws, the caller gets
    /// Errc::function_failed. Calls run concurrently, in the node's thread pool unless
    /// options.executor is set.
    template <class F>
    Served serve(const FunctionName& name, F function, const FunctionOptions& options = {}) const {
        return detail::serve(body_, name, detail::raw(std::move(function)), options);
    }

    /// Calls a function of a rank, which may be this one. An lvalue `argument` above 16 KiB must
    /// stay valid until the Work completes. nexar never retries a call: if the response is lost,
    /// the call fails with Errc::outcome_unknown, or with the error that says why the rank is gone
    /// or cannot be reached (membership_changed, peer_unreachable); the function may have run.
    template <class R = Payload, class A>
        requires detail::Passable<std::remove_cvref_t<A>> && detail::Returnable<R>
    Work<R> call(int rank, const FunctionName& name, A&& argument,
                 const CallOptions& options = {}) const {
        return Work<R>(
            detail::start_call(body_, rank, name, detail::argument_of(std::forward<A>(argument)),
                               options, detail::expected<R>()),
            &detail::take_response<R>);
    }
    template <class R = Payload>
        requires detail::Returnable<R>
    Work<R> call(int rank, const FunctionName& name, const CallOptions& options = {}) const {
        return Work<R>(detail::start_call(body_, rank, name, {}, options, detail::expected<R>()),
                       &detail::take_response<R>);
    }

    /// The address at which other members reach this node: "127.0.0.1:40123".
    std::string address() const;

    /// The connections to all other members of the cluster, by their rank in it.
    std::vector<PeerLink> peers() const;

    /// Leaves the cluster; waits at most 100 ms until the other members have agreed to it. Ends
    /// every pending operation with Errc::closed, notifies the peers, and returns when no operation
    /// is left. Messages whose send had completed are delivered: they have arrived at the receiving
    /// node, or arrive before this call returns, and can be received there at any later time,
    /// unless a member of their communicator fails first.
    void close();

    // For a user's own event loop (Progressing::user_loop): call poll() when descriptor() is
    // readable and when next_deadline() has passed, then call next_deadline() again. The nodes of
    // one local_cluster() share both. Only one thread at a time may call these.

    int descriptor() const;
    std::optional<std::chrono::steady_clock::time_point> next_deadline();
    void poll();

private:
    std::shared_ptr<detail::NodeBody> body_;
};

/// Creates `size` real nodes in this process, connected to each other by encrypted QUIC over
/// loopback, for tests and examples. Element i has rank i. The nodes share one progress loop, read
/// no settings, and do not detect failures.
NEXAR_EXPORT std::vector<Node> local_cluster(int size, const NodeOptions& options = {});

}  // namespace nexar

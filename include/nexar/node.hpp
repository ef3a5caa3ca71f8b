#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/communicator.hpp>
#include <nexar/export.hpp>
#include <nexar/rpc.hpp>
#include <optional>
#include <string>
#include <vector>

namespace nexar {

namespace detail {
class NodeBody;
}

/// Who makes progress while no thread waits for a Work.
enum class Progressing : std::uint8_t {
    background,  // a thread of nexar
    user_loop,   // the user's own loop, see Node::descriptor()
};

struct NodeOptions {
    Progressing progressing = Progressing::background;
    /// Operations that may be under way at once; more end with Errc::too_many_pending.
    std::size_t max_pending = std::size_t{1} << 20U;
    /// How long a waiting thread polls before it sleeps.
    std::chrono::nanoseconds spin = std::chrono::microseconds(20);
    /// Data in the clear, for a fabric that nobody else reaches; peers are still authenticated.
    bool unprotected = false;
    RpcOptions rpc{};
    /// As the setting collective_algorithm, for nodes that read no settings.
    std::string collective_algorithm{};
};

/// The way to another member.
struct PeerLink {
    int rank = 0;
    bool connected = false;
    bool dialed = false;                   // by this node; else the other one dialed
    std::string address{};                 // that won, when this node dialed
    std::chrono::nanoseconds handshake{};  // what it took, when this node dialed
    std::string why{};                     // what else was tried, and what became of it
};

/// This process's membership in a cluster. Destroying the last handle closes it. Any thread may
/// call. A child made by fork cannot use it: every call there is Errc::forked, and destroying it
/// there does nothing to the node of the parent.
class NEXAR_EXPORT Node {
public:
    explicit Node(std::shared_ptr<detail::NodeBody> body) noexcept;
    Node(Node&&) noexcept;
    Node& operator=(Node&&) noexcept;
    ~Node();

    /// All members.
    Communicator world() const;

    // Calls of functions between members, by rank in the world. One that is not served yet when
    // the call arrives is Errc::unknown_function: serve first, then let the others know.

    /// Lets members call `function`: R(), R(const Call&), R(T) or R(const Call&, T). T is a
    /// trivially copyable value, std::string, std::vector, std::span or std::string_view; R the
    /// same, but for views, or void. What it throws is Errc::function_failed at the caller. Calls
    /// run at the same time, in the node's pool unless options.executor says where else.
    template <class F>
    Served serve(const FunctionName& name, F function, const FunctionOptions& options = {}) const {
        return detail::serve(body_, name, detail::raw(std::move(function)), options);
    }

    /// Calls a function of a rank, this one included. An lvalue `argument` above 16 KiB is in use
    /// until the Work has ended. Never calls twice: an answer that is lost is
    /// Errc::outcome_unknown.
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

    /// Where other members reach it: "127.0.0.1:40123".
    std::string address() const;

    /// All other members of the world, by rank, and how they are reached.
    std::vector<PeerLink> peers() const;

    /// Ends every operation that is under way, with Errc::closed, tells the peers, and returns when
    /// nothing is left. Messages whose send had ended are delivered: they have arrived at the other
    /// rank, or arrive before this returns, and are received there whenever it likes.
    void close();

    // For a loop of the user (Progressing::user_loop): call poll() when descriptor() is readable
    // and when next_deadline() has come, then ask for next_deadline() again. Nodes of one
    // local_cluster() share both. One thread at a time.

    int descriptor() const;
    std::optional<std::chrono::steady_clock::time_point> next_deadline();
    void poll();

private:
    std::shared_ptr<detail::NodeBody> body_;
};

/// `size` real nodes in this process, connected with each other over encrypted loopback QUIC, for
/// tests and examples; element i has rank i. They share one progress loop.
NEXAR_EXPORT std::vector<Node> local_cluster(int size, const NodeOptions& options = {});

}  // namespace nexar

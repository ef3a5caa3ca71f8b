#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "engine/call.hpp"
#include "engine/lane_reader.hpp"
#include "engine/peer_calls.hpp"
#include "engine/services.hpp"
#include "engine/transfers.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

struct Context;

/// Remote procedure calls between nodes: the functions that this node serves, the calls it makes
/// and the calls it receives. A part of the Engine, under the same rules.
///
/// Every request is answered exactly once: by its function, or with an error if there is no such
/// function, a limit is reached or the deadline passes. A request is never written twice.
class Calls {
public:
    Calls(Services& services, const CallLimits& limits, std::size_t eager_limit,
          const std::vector<std::unique_ptr<Peer>>& peers) noexcept
        : services_(&services), limits_(limits), eager_limit_(eager_limit), peers_(&peers) {}

    const CallLimits& limits() const noexcept { return limits_; }

    /// Sets the communicator that determines the ranks of callers. Must precede the first call.
    void set_world(Context& world) noexcept { world_ = &world; }
    const Context* world() const noexcept { return world_; }
    /// Sets the rank of this node in the cluster.
    void set_own_rank(Rank rank) noexcept { own_rank_ = rank; }
    /// The rank of this node in the cluster, or in the world if there is no cluster.
    std::optional<Rank> own_rank() const noexcept;

    /// Fails with invalid_argument when another function has the same name or number.
    Result<void> add(Function& function);
    /// Stops serving a function and fails its calls that poll_call() has not returned. For those
    /// that it has returned, respond() must follow before `function` is destroyed.
    void remove(Function& function);

    /// Sets the current time and ends calls whose deadline has passed. Must precede other calls
    /// that depend on the time.
    void advance(TimePoint now);
    bool has_deadline() const noexcept { return !due_out_.empty() || !due_in_.empty(); }
    std::optional<TimePoint> next_deadline() const noexcept;

    // For operations that the engine has admitted.
    void start(Context& context, CallOperation& call);
    void cancel(CallOperation& call);

    /// Returns the next call whose function must run, or nullptr. respond() must follow.
    InCall* poll_call() noexcept;
    /// Returns the next running call whose answer is no longer needed, or nullptr. Returns each
    /// call once.
    InCall* poll_stopped() noexcept;
    /// Reports what the function returned. The caller must not use `call` afterwards.
    void respond(InCall& call, Result<std::vector<std::byte>> result);

    // Frames, stream names and links.
    Result<LanePayload> on_frame(Peer& peer, const wire::FrameHeader& header,
                                 port::ConstBytes body);
    static Result<Awaited> look_up(Peer& peer, const TransferName& name);
    void drain(Peer& peer);
    void down(Peer& peer, const Error& reason);
    void close();
    /// Ends the calls of this node: all, or those to one peer whose links may be up. Those of peers
    /// go on.
    void halt(const Error& reason);
    void halt(Peer& peer, const Error& reason);
    /// The program was aborted: outgoing calls end with `reason`. Incoming calls are no longer
    /// answered, since the engine tells their callers of the abort.
    void abort(const Error& reason);

private:
    friend class CallOperation;
    friend struct CallPayload;
    friend struct InCall;

    // calls.cpp: payloads and shutdown
    LanePayload expect(Peer& peer, CallPayload& payload, std::uint64_t bytes,
                       wire::PayloadPlace place, const TransferName& name);
    static void detach(Peer* peer, CallPayload& payload);
    void finished(CallPayload& payload);
    void aborted(CallPayload& payload);

    // calls_out.cpp: outgoing calls
    bool write_request(Peer& peer, CallOperation& call);
    Result<LanePayload> on_response(Peer& peer, const wire::Response& response);
    std::optional<Error> refusal(const CallOperation& call, std::uint64_t size) const;
    void give_up(CallOperation& call, const Error& reason);
    void end(CallOperation& call, std::optional<Error> error);
    void expire_out(TimePoint now);

    // calls_in.cpp: incoming calls
    Function* find(std::uint16_t number, std::string_view name) const noexcept;
    Result<LanePayload> on_request(Peer& peer, const wire::Request& request);
    std::optional<Error> objection(const Peer* peer, Rank caller, std::uint64_t size,
                                   const Function* function) const;
    std::uint64_t held(const Peer* peer) const noexcept;
    std::optional<Rank> rank_of(Peer& peer) const;
    void ready(InCall& call);
    void on_cancel(Peer& peer, std::uint64_t id);
    void start_local(CallOperation& call, Context& context);
    void answer(InCall& call, const Error& error);
    void answer(InCall& call, std::vector<std::byte> response);
    static void send_response(Peer& peer, const wire::Response& header,
                              const std::vector<std::byte>& payload);
    /// Ends a call whose result is no longer needed. Answers it with `error`, unless it was
    /// answered already.
    void stop(InCall& call, const Error& error);
    void destroy(InCall& call);
    const PeerCalls& calls_of(const Peer* peer) const noexcept;
    PeerCalls& calls_of(const Peer* peer) noexcept;
    void expire_in(TimePoint now);
    template <class Visit>
    void for_each_in(Visit visit);

    Services* services_;
    CallLimits limits_;
    std::size_t eager_limit_;
    const std::vector<std::unique_ptr<Peer>>* peers_;
    Context* world_ = nullptr;
    std::optional<Rank> own_rank_{};
    TimePoint now_{};
    bool closing_ = false;
    bool aborted_ = false;
    std::map<std::string, Function*, std::less<>> by_name_;
    std::map<std::uint16_t, Function*> by_number_;
    PeerCalls self_{};
    std::set<std::pair<TimePoint, CallOperation*>> due_out_;
    std::set<std::pair<TimePoint, InCall*>> due_in_;
    IntrusiveList<InCall, &InCall::hook> ready_;
    IntrusiveList<InCall, &InCall::hook> stopped_;
};

}  // namespace nexar::engine

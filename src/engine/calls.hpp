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
#include "engine/in_bulk.hpp"
#include "engine/lane_reader.hpp"
#include "engine/peer_calls.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

struct Context;

/// Calls of functions between nodes: what this node serves, what it called, and what it was called
/// for. A part of the Engine, under the same rules.
///
/// Every request that came is answered once: by its function, or at once when there is no such
/// function, no room, or no time. A request that was written is never written again.
class Calls {
public:
    class Host {
    public:
        virtual ~Host() = default;
        virtual void finish(Operation& operation) = 0;
        virtual void violated(Peer& peer, const Error& error) = 0;
        /// Something waits for a link to it.
        virtual void want(Peer& peer) = 0;
    };

    Calls(Host& host, const CallLimits& limits, std::size_t eager_limit,
          const std::vector<std::unique_ptr<Peer>>& peers) noexcept
        : host_(&host), limits_(limits), eager_limit_(eager_limit), peers_(&peers) {}

    const CallLimits& limits() const noexcept { return limits_; }

    /// Whose ranks callers have. Before, nothing can be called.
    void set_world(Context& world) noexcept { world_ = &world; }
    const Context* world() const noexcept { return world_; }

    /// Fails with invalid_argument when another one has its name or number.
    Result<void> add(Function& function);
    /// What was called and not taken by poll_call() is answered. What was taken is the taker's to
    /// answer, before `function` ends.
    void remove(Function& function);

    /// What time it is, before anything else is done with it: ends what has no time left.
    void advance(TimePoint now);
    std::optional<TimePoint> next_deadline() const noexcept;

    // Of an operation that the engine has admitted.
    void start(Context& context, CallOperation& call);
    void cancel(CallOperation& call);

    /// A call whose function is to be run; respond() must follow. nullptr: none.
    InCall* poll_call() noexcept;
    /// One of them that nobody wants an answer of any more; each is told once. nullptr: none.
    InCall* poll_stopped() noexcept;
    /// What the function said; `call` is gone afterwards.
    void respond(InCall& call, Result<std::vector<std::byte>> result);

    // What happens to links. Streams: false, it is not one of a call.
    std::unique_ptr<LaneReader::Taker> make_taker(Peer& peer);
    void drain(Peer& peer);
    void writable(Peer& peer);
    void named(InBulk& stream, const wire::Preamble& preamble);
    bool finished(Peer& peer, const port::Finished& finished);
    bool aborted(Peer& peer, port::StreamId stream);
    bool released(Peer& peer, const port::Released& released);
    void down(Peer& peer, const Error& reason);
    void close();
    /// The program was aborted: what was called ends with `reason`, and nothing is answered any
    /// more, since callers hear of the abort themselves.
    void abort(const Error& reason);

private:
    class Taker;

    // calls.cpp: lanes and streams
    template <class Message>
    void say(Peer& peer, const Message& message);
    void send_frame(Peer& peer, std::vector<std::byte> frame);
    void flush(Peer& peer);
    static void attach(CallPayload& payload, InBulk& stream);
    static void detach(CallPayload& payload);
    Result<std::uint64_t> on_frame(Peer& peer, const wire::FrameHeader& header,
                                   port::ConstBytes body);
    void payload_came(Peer& peer);

    // calls_out.cpp: calls of this node
    bool write_request(Peer& peer, CallOperation& call);
    Result<std::uint64_t> on_response(Peer& peer, const wire::Response& response);
    std::optional<Error> refusal(const CallOperation& call, std::uint64_t size) const;
    void give_up(CallOperation& call, const Error& reason);
    void end(CallOperation& call, std::optional<Error> error);
    Result<void> named_response(Peer& peer, InBulk& stream, std::uint64_t id);
    void expire_out(TimePoint now);

    // calls_in.cpp: calls of this node's functions
    Function* find(std::uint16_t number, std::string_view name) const noexcept;
    Result<std::uint64_t> on_request(Peer& peer, const wire::Request& request);
    std::optional<Error> objection(const PeerCalls& calls, Rank caller, std::uint64_t size,
                                   const Function* function) const;
    std::optional<Rank> rank_of(Peer& peer) const;
    Result<void> named_request(Peer& peer, InBulk& stream, std::uint64_t id);
    void ready(InCall& call);
    void on_cancel(Peer& peer, std::uint64_t id);
    void start_local(CallOperation& call, Context& context);
    void answer(InCall& call, const Error& error);
    void answer(InCall& call, std::vector<std::byte> response);
    void send_response(Peer& peer, const wire::Response& header,
                       const std::vector<std::byte>& payload);
    /// Nobody wants the answer any more, or it is `error`.
    void stop(InCall& call, const Error& error);
    void destroy(InCall& call);
    PeerCalls& calls_of(InCall& call) noexcept;
    void expire_in(TimePoint now);
    template <class Visit>
    void for_each_in(Visit visit);

    Host* host_;
    CallLimits limits_;
    std::size_t eager_limit_;
    const std::vector<std::unique_ptr<Peer>>* peers_;
    Context* world_ = nullptr;
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

#include "engine/calls.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/assert.hpp"
#include "base/pool_profile.hpp"
#include "calls_script.hpp"
#include "engine/engine.hpp"
#include "engine_script.hpp"
#include "harness.hpp"
#include "support/fake_link.hpp"
#include "support/said.hpp"

/// Runs engine::Calls against a peer that sends what the input says, valid frames or anything else.
/// The input also makes calls, cancels, answers and lets time pass on this side. Whatever happens,
/// every call of this side ends once, every request is answered at most once, memory stays within
/// the limits, and nothing is left at the end.
///
/// Accepts inputs in which the peer was not cut off.
namespace nexar::fuzz {

namespace {

using engine::Engine;
using engine::EngineOptions;
using engine::InCall;
using port::Lane;
using testing::FakeLink;
using testing::said;

/// Small enough that a short input reaches every limit.
EngineOptions options() {
    EngineOptions made;
    made.eager_limit = 256;
    made.bulk_head = 1024;
    made.shared = {.payload = 4096, .headers = 8};
    made.reserve = {.payload = 1024, .headers = 4};
    made.max_pending = 32;
    made.calls = {.max_request = 2000,
                  .max_response = 2000,
                  .max_in_flight = 6,
                  .max_held = 5000,
                  .max_owed = 8,
                  .max_backlog = 16};
    return made;
}

/// A call of this side with its memory. Freed as soon as it ends, so that ASan detects a later use
/// or a second end.
struct Asked {
    std::vector<std::byte> memory{};
    engine::CallOperation call{};
};

class Play {
public:
    explicit Play(std::span<const std::byte> input)
        : script_(input),
          pool_(PoolProfileBuilder().tier("small", 4096, 8).build().value()),
          engine_(std::make_unique<Engine>(options(), pool_)),
          link_(port::LinkId(1), {.cluster = {}, .node = node(1), .incarnation = {}}) {
        const std::array<NodeId, 2> members{node(0), node(1)};
        world_ = &engine_->add_context(kFirstContext, members, Rank(0));
        engine_->calls().set_world(*world_);
        function_.name = "f";
        guarded_.number = 7;
        guarded_.callers.emplace();
        NEXAR_ASSERT(engine_->calls().add(function_) && engine_->calls().add(guarded_));
        link_.come_up();
        turn();
        link_.arrive(Lane::rpc, said(wire::Preamble{.lane = wire::Lane::rpc}));
    }

    bool run() {
        while (!script_.done()) {
            const auto act =
                static_cast<CallAct>(script_.byte() % static_cast<unsigned>(CallAct::no_more));
            if (act <= CallAct::raw) {
                if (!link_.is_down()) peer_step(act);
            } else {
                own_step(act);
            }
            check();
        }
        const bool kept_rules = closed_ || !link_.closed();
        end();
        return kept_rules;
    }

private:
    static NodeId node(std::uint8_t number) {
        std::array<std::byte, NodeId::kBytes> bytes{};
        bytes.back() = std::byte{number};
        return NodeId(bytes);
    }

    /// Usually the next number, otherwise one shortly before it.
    std::uint64_t number(std::uint64_t next) {
        const unsigned which = script_.byte();
        if (which < 128) return next;
        return which == 255 ? ~std::uint64_t{0} : next - std::min<std::uint64_t>(next, which % 8);
    }

    void put_size(std::uint64_t& size, wire::PayloadPlace& place) {
        size = script_.word() % 2200;
        if (size > 300) place = wire::PayloadPlace::stream;
        if (place == wire::PayloadPlace::lane) lane_left_ = size;
    }

    void peer_step(CallAct act) {
        if (act <= CallAct::cancel && lane_left_ != 0) return;  // a payload must come first
        switch (act) {
            case CallAct::request: {
                wire::Request made;
                made.call = wire::CallId(number(next_request_));
                if (made.call.value() == next_request_) ++next_request_;
                const unsigned which = script_.byte();
                if (which % 8 == 1) made.function = 7;
                if (which % 8 > 1) made.name = "f";
                made.time_left = Duration(which / 8);
                put_size(made.size, made.place);
                link_.arrive(Lane::rpc, said(made));
                return;
            }
            case CallAct::response: {
                wire::Response made;
                made.call = wire::CallId(number(next_response_));
                if (made.call.value() == next_response_) ++next_response_;
                if (script_.byte() % 4 == 0) {
                    made.code = Errc::function_failed;
                } else {
                    put_size(made.size, made.place);
                }
                link_.arrive(Lane::rpc, said(made));
                return;
            }
            case CallAct::cancel:
                link_.arrive(Lane::rpc,
                             said(wire::Cancel{.call = wire::CallId(number(next_request_))}));
                return;
            case CallAct::payload: {
                const auto bytes = std::min<std::uint64_t>(script_.word(), lane_left_);
                link_.arrive(Lane::rpc, std::vector<std::byte>(bytes));
                lane_left_ -= bytes;
                return;
            }
            case CallAct::raw:
                link_.arrive(Lane::rpc, script_.bytes(script_.byte()));
                return;
            default:
                stream_step(act);
        }
    }

    void stream_step(CallAct act) {
        if (act == CallAct::open) {
            if (link_.incoming() >= 16) return;
            const bool request = script_.byte() % 2 == 0;
            const std::uint64_t id = number(request ? next_request_ : next_response_);
            const port::StreamId stream = link_.open();
            turn();
            streams_.push_back(stream);
            link_.arrive(stream, said(wire::Preamble{.lane = wire::Lane::call,
                                                     .call = wire::CallId(id),
                                                     .part = request ? wire::CallPart::request
                                                                     : wire::CallPart::response}));
            return;
        }
        if (streams_.empty()) return;
        const port::StreamId stream = streams_[script_.byte() % streams_.size()];
        if (act == CallAct::bytes) {
            link_.arrive(stream, std::vector<std::byte>(script_.word() % 2200));
        } else if (act == CallAct::finish) {
            link_.finish(stream);
        } else {
            link_.reset(stream);
        }
    }

    void own_step(CallAct act) {
        switch (act) {
            case CallAct::call:
                return start();
            case CallAct::give_up:
                if (asked_.empty()) return;
                return engine_->cancel(
                    std::next(asked_.begin(),
                              script_.byte() % static_cast<std::ptrdiff_t>(asked_.size()))
                        ->second->call);
            case CallAct::take:
                if (InCall* call = engine_->calls().poll_call()) running_.push_back(call);
                return;
            case CallAct::respond:
                return respond();
            case CallAct::time:
                now_ += Duration(script_.byte());
                return engine_->calls().advance(now_);
            case CallAct::room:
                return link_.set_room(Lane::rpc, std::size_t{script_.byte()} * 16);
            case CallAct::release: {
                if (link_.outgoing().empty()) return;
                const unsigned which = script_.byte();
                return link_.release(
                    port::StreamId(link_.outgoing().begin()->first),
                    which % 2 == 0 ? port::SendOutcome::delivered : port::SendOutcome::refused);
            }
            case CallAct::remove:
                if (!std::exchange(removed_, true)) engine_->calls().remove(function_);
                return;
            case CallAct::down:
                return link_.go_down(Error(Errc::timed_out, "the link went down"));
            case CallAct::close:
                closed_ = closed_ || !link_.closed();
                return engine_->close();
            default:
                turn();
        }
    }

    void start() {
        if (asked_.size() >= 40) return;
        auto owned = std::make_unique<Asked>();
        Asked& asked = *owned;
        asked_.emplace(&asked, std::move(owned));
        const unsigned which = script_.byte();
        asked.memory.resize(script_.word() % 2200);
        asked.call.owner = &asked;
        asked.call.to = Rank(which % 2);
        asked.call.name = which % 16 == 3 ? "g" : "f";
        asked.call.content = asked.memory;
        asked.call.max_response = 2000;
        asked.call.unit = which % 8 == 5 ? 8 : 1;
        if (which >= 128) asked.call.deadline = now_ + Duration(which);
        engine_->start(*world_, asked.call);
    }

    void respond() {
        if (running_.empty()) return;
        const auto at =
            running_.begin() + script_.byte() % static_cast<std::ptrdiff_t>(running_.size());
        InCall& call = **at;
        running_.erase(at);
        const unsigned size = script_.word();
        if (size % 5 == 1) {
            engine_->calls().respond(call, Error(Errc::function_failed, "it threw"));
        } else {
            engine_->calls().respond(call, std::vector<std::byte>(size % 2200));
        }
    }

    void turn() {
        while (const auto event = link_.poll_event()) engine_->handle(*event);
        while (engine::Operation* done = engine_->poll_done()) {
            NEXAR_ASSERT(asked_.erase(static_cast<Asked*>(done->owner)) == 1,
                         "every call must end once");
        }
        while (InCall* call = engine_->calls().poll_stopped()) {
            NEXAR_ASSERT(std::ranges::find(running_, call) != running_.end(),
                         "only running calls can be stopped");
        }
    }

    void check() const {
        std::set<std::uint64_t> answered;
        for (const auto& one : testing::frames_of<wire::Response>(link_.written(Lane::rpc))) {
            NEXAR_ASSERT(answered.insert(one.call.value()).second,
                         "a request must have only one answer");
        }
        // Calls of the peer, and of this node itself.
        NEXAR_ASSERT(running_.size() <= 2 * options().calls.max_in_flight);
    }

    void end() {
        engine_->close();
        link_.go_down(Error(Errc::link_closed, "this side closed the link"));
        turn();
        NEXAR_ASSERT(asked_.empty() && engine_->pending() == 0, "every call must end");
        NEXAR_ASSERT(engine_->idle() && engine_->calls().poll_call() == nullptr);
        for (InCall* call : running_) engine_->calls().respond(*call, std::vector<std::byte>{});
        NEXAR_ASSERT(!engine_->calls().next_deadline());
        engine_.reset();
    }

    Script script_;
    BufferPool pool_;
    std::unique_ptr<Engine> engine_;
    FakeLink link_;
    engine::Context* world_ = nullptr;
    engine::Function function_{};
    engine::Function guarded_{};
    TimePoint now_{};
    std::map<Asked*, std::unique_ptr<Asked>> asked_;
    std::vector<InCall*> running_;
    std::vector<port::StreamId> streams_;
    std::uint64_t next_request_ = 0;
    std::uint64_t next_response_ = 0;
    std::uint64_t lane_left_ = 0;
    bool removed_ = false;
    bool closed_ = false;  // by this side, before the peer was cut off
};

}  // namespace

bool accepts_calls(std::span<const std::byte> input) {
    return Play(input).run();
}

}  // namespace nexar::fuzz

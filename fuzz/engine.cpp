#include "engine/engine.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "base/assert.hpp"
#include "base/pool_profile.hpp"
#include "engine_collectives.hpp"
#include "engine_peer.hpp"
#include "engine_script.hpp"
#include "harness.hpp"
#include "support/fake_link.hpp"
#include "support/said.hpp"

/// Runs an engine against a peer that sends what the input says, valid frames or anything else. The
/// input also starts, cancels and takes operations on this side. Whatever happens, every operation
/// ends once, its memory is not used afterwards, buffered data stays within the credits, and
/// nothing is left at the end.
///
/// Accepts inputs in which the peer was not cut off.
namespace nexar::fuzz {

namespace {

using engine::Engine;
using engine::EngineOptions;
using engine::Operation;
using port::Lane;
using testing::FakeLink;
using testing::said;

constexpr Rank kPeer{1};
constexpr std::size_t kMaxOperations = 64;

/// Small enough that a short input reaches every limit.
EngineOptions options() {
    EngineOptions made;
    made.eager_limit = 256;
    made.bulk_head = 1024;
    made.shared = {.payload = 4096, .headers = 8};
    made.reserve = {.payload = 1024, .headers = 4};
    made.max_pending = kMaxOperations / 2;
    made.max_early_contexts = 3;
    made.max_control_backlog = 8;
    made.collectives = collective_limits();
    return made;
}

/// An operation with its memory. Freed as soon as it ends, so that ASan detects a later use or a
/// second end.
struct Asked {
    explicit Asked(std::size_t size) : memory(size), region(memory), shown(memory) {}

    std::vector<std::byte> memory;
    port::Bytes region;
    port::ConstBytes shown;
    engine::SendOperation send{};
    engine::ReceiveOperation receive{};
    engine::ProbeOperation probe{};
    engine::CollectiveOperation collective{};
    std::vector<std::byte> input{};  // of a collective
    Shape shape{};
    const engine::Context* in = nullptr;
};

class Play {
public:
    explicit Play(std::span<const std::byte> input)
        : script_(input),
          pool_(PoolProfileBuilder().tier("small", 4096, 8).build().value()),
          engine_(std::make_unique<Engine>(options(), pool_)),
          link_(port::LinkId(1), {.cluster = {}, .node = node(1), .incarnation = {}}),
          peer_(script_, link_, [this] { turn(); }) {
        make(kFirstContext);
        link_.come_up();
        turn();
        link_.arrive(Lane::control, said(wire::Preamble{.lane = wire::Lane::control}));
        link_.arrive(Lane::eager, said(wire::Preamble{.lane = wire::Lane::eager}));
    }

    bool run() {
        while (!script_.done()) {
            step(script_.act());
            check_bounds();
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

    void step(Act act) {
        if (act <= Act::withdraw || act == Act::begin || act == Act::leave ||
            (act >= Act::part && act <= Act::mismatch)) {
            if (!link_.is_down()) peer_.step(act);
        } else if (act <= Act::use || act == Act::collect) {
            local_step(act);
        } else {
            link_step(act);
        }
    }

    void local_step(Act act) {
        switch (act) {
            case Act::send:
            case Act::receive:
            case Act::probe:
                if (asked_.size() < kMaxOperations) start(act);
                return;
            case Act::collect:
                if (asked_.size() < kMaxOperations) collect();
                return;
            case Act::cancel:
                cancel();
                return;
            case Act::take:
                if (engine::InMessage* taken = engine_->take(*contexts_[0], pattern())) {
                    taken_.push_back(taken);
                }
                return;
            default:
                use_taken(act == Act::use);
        }
    }

    void start(Act act) {
        const unsigned which = script_.byte();
        engine::Context& where = *contexts_[which / 16 % contexts_.size()];
        if (act == Act::probe) {
            Asked& asked = add(0);
            asked.in = &where;
            asked.probe.owner = &asked;
            asked.probe.pattern = pattern(which);
            engine_->start(where, asked.probe);
        } else if (act == Act::send) {
            Asked& asked = add(script_.word() % 5000);
            asked.in = &where;
            const unsigned flags = script_.byte();
            asked.memory = payload(asked.memory.size(), 0, asked.memory.size());
            asked.shown = asked.memory;
            asked.send.owner = &asked;
            asked.send.to = Rank(which % 2);
            if (asked.send.to == Rank(0)) ++to_self_;
            asked.send.tag = Tag(which / 2 % 4);
            asked.send.synchronous = (flags & 1U) != 0;
            asked.send.content = {&asked.shown, 1};
            engine_->start(where, asked.send);
        } else {
            Asked& asked = add(script_.word() % 8192);
            asked.in = &where;
            asked.receive.owner = &asked;
            asked.receive.pattern = pattern(which);
            asked.receive.content = {&asked.region, 1};
            asked.receive.only_take = script_.byte() % 4 == 1;
            engine_->start(where, asked.receive);
        }
    }

    void collect() {
        engine::Context& where = *contexts_[script_.byte() % contexts_.size()];
        const Shape shape = script_shape(script_);
        Asked& asked = add(shape.output());
        asked.in = &where;
        asked.shape = shape;
        asked.input.resize(shape.input());
        asked.collective.owner = &asked;
        shape.set(asked.collective);
        asked.collective.input = {asked.input};
        asked.collective.output = {asked.region};
        engine_->start(where, asked.collective);
    }

    void cancel() {
        if (asked_.empty()) return;
        const auto at = script_.byte() % asked_.size();
        Asked& asked = *std::next(asked_.begin(), static_cast<std::ptrdiff_t>(at))->second;
        if (asked.send.owner != nullptr) engine_->cancel(asked.send);
        if (asked.receive.owner != nullptr) engine_->cancel(asked.receive);
        if (asked.probe.owner != nullptr) engine_->cancel(asked.probe);
        if (asked.collective.owner != nullptr) engine_->cancel(asked.collective);
    }

    void use_taken(bool receive) {
        if (taken_.empty()) return;
        const auto at =
            taken_.begin() + script_.byte() % static_cast<std::ptrdiff_t>(taken_.size());
        engine::InMessage& message = **at;
        const engine::Context* const in = message.context;
        taken_.erase(at);
        if (!receive) {
            ++discarded_;
            engine_->drop(message);
            return;
        }
        Asked& asked = add(script_.word() % 8192);
        asked.in = in;
        asked.receive.owner = &asked;
        asked.receive.content = {&asked.region, 1};
        engine_->start(message, asked.receive);
    }

    void link_step(Act act) {
        switch (act) {
            case Act::release: {
                if (link_.outgoing().empty()) return;
                const auto at = script_.byte() % link_.outgoing().size();
                const auto out =
                    std::next(link_.outgoing().begin(), static_cast<std::ptrdiff_t>(at));
                link_.release(port::StreamId(out->first), script_.byte() % 2 == 0
                                                              ? port::SendOutcome::delivered
                                                              : port::SendOutcome::refused);
                return;
            }
            case Act::room: {
                const auto lane = script_.byte() % 2 == 0 ? Lane::control : Lane::eager;
                link_.set_room(lane, std::size_t{script_.byte()} * 64);
                return;
            }
            case Act::make:
                make(script_.context());
                return;
            case Act::end:
                end_context(script_.byte());
                return;
            case Act::placement:
                link_.direct = script_.byte() % 2 == 1;
                return;
            case Act::down:
                link_.go_down(Error(script_.byte() % 2 == 0 ? Errc::link_closed : Errc::timed_out,
                                    "the link went down"));
                return;
            case Act::time:
                now_ += script_.byte() * std::chrono::milliseconds(250);
                engine_->advance(now_);
                return;
            case Act::close:
                closed_ = closed_ || !link_.closed();
                engine_->close();
                return;
            default:
                turn();
        }
    }

    engine::Pattern pattern() { return pattern(script_.byte()); }
    static engine::Pattern pattern(unsigned which) {
        engine::Pattern made;
        if ((which & 1U) != 0) made.source = (which & 8U) != 0 ? Rank(0) : kPeer;
        if ((which & 2U) != 0) made.tag = Tag(which / 4 % 4);
        return made;
    }

    void make(ContextId id) {
        const std::array<NodeId, 2> members{node(0), node(1)};
        const auto same = [&](const engine::Context* made) { return made->id == id; };
        if (std::ranges::any_of(contexts_, same)) return;
        const wire::ContextOrigin origin = origin_of(id);
        if (!contexts_.empty()) {
            // Each is created once, in order.
            std::uint64_t& creations = contexts_[0]->creations;
            if (origin.creation < creations) return;
            creations = origin.creation + 1;
        }
        contexts_.push_back(&engine_->add_context(id, members, Rank(0), origin));
        contexts_.back()->collectives.set_profile(collective_profile());
    }

    /// Ends any context but the first, unless an operation is in flight in it.
    void end_context(unsigned which) {
        if (contexts_.size() < 2) return;
        const auto at =
            contexts_.begin() + 1 + static_cast<std::ptrdiff_t>(which % (contexts_.size() - 1));
        engine::Context& context = **at;
        const bool used =
            std::ranges::any_of(asked_, [&](const auto& a) { return a.second->in == &context; }) ||
            std::ranges::any_of(taken_, [&](const auto* m) { return m->context == &context; });
        if (used) return;
        discarded_ += context.matcher.all_arrived().size();
        contexts_.erase(at);
        engine_->end_context(context);
    }

    Asked& add(std::size_t bytes) {
        auto owned = std::make_unique<Asked>(bytes);
        Asked& asked = *owned;
        asked_.emplace(number_++, std::move(owned));
        return asked;
    }

    void turn() {
        while (const auto event = link_.poll_event()) engine_->handle(*event);
        while (Operation* done = engine_->poll_done()) ended(*done);
    }

    void ended(Operation& done) {
        const auto found = std::ranges::find_if(
            asked_, [&](const auto& entry) { return entry.second.get() == done.owner; });
        NEXAR_ASSERT(found != asked_.end(), "every operation must end once");
        const Asked& asked = *found->second;
        if (done.kind() == Operation::Kind::receive) {
            if (done.error) ++discarded_;
            if (asked.receive.message != nullptr) {
                taken_.push_back(asked.receive.message);
            } else if (!done.error && !peer_.said_anything()) {
                NEXAR_ASSERT(done.envelope.bytes <= asked.memory.size());
                for (std::uint64_t i = 0; i < done.envelope.bytes; ++i) {
                    NEXAR_ASSERT(asked.memory[i] == content(done.envelope.bytes, i));
                }
            }
        }
        const bool got = asked.shape.kind == Shape::Kind::get && !done.error;
        if (got && !peer_.said_anything()) {
            for (std::uint64_t i = 0; i < asked.shape.size; ++i) {
                NEXAR_ASSERT(asked.memory[i] == content(asked.shape.size, i));
            }
        }
        asked_.erase(found);
    }

    /// Credit bounds unexpected data; data of pending operations comes on top.
    void check_bounds() const {
        const EngineOptions limits = options();
        const std::size_t contexts = contexts_.size() + limits.max_early_contexts;
        const std::size_t headers = limits.shared.headers + contexts * limits.reserve.headers;
        const std::size_t own = asked_.size() + taken_.size() + to_self_ + discarded_;
        NEXAR_ASSERT(engine_->messages() <= headers + own);
        // The smallest message that gets a buffer of its own, and the largest buffer.
        constexpr std::size_t kLeast = engine::InMessage::kMaxBlockBytes + 1;
        constexpr std::size_t kMost = 4096;
        const std::size_t buffers =
            2 * limits.shared.payload / kLeast + contexts * (limits.reserve.payload / kLeast) + own;
        const auto scratch = static_cast<std::size_t>(std::ranges::count_if(
            asked_, [](const auto& a) { return a.second->collective.owner != nullptr; }));
        NEXAR_ASSERT(pool_.statistics().total.bytes_in_use <=
                     buffers * kMost + scratch * Shape::kMostScratch);
    }

    void end() {
        engine_->close();
        link_.go_down(Error(Errc::link_closed, "this side closed the link"));
        turn();
        NEXAR_ASSERT(asked_.empty() && engine_->pending() == 0, "every operation must end");
        NEXAR_ASSERT(engine_->idle());
        for (engine::InMessage* message : taken_) engine_->drop(*message);
        engine_.reset();
        NEXAR_ASSERT(pool_.statistics().total.bytes_in_use == 0);
    }

    Script script_;
    BufferPool pool_;
    std::unique_ptr<Engine> engine_;
    FakeLink link_;
    ScriptedPeer peer_;
    std::vector<engine::Context*> contexts_;
    std::map<std::uint64_t, std::unique_ptr<Asked>> asked_;
    std::uint64_t number_ = 0;
    std::vector<engine::InMessage*> taken_;
    std::size_t to_self_ = 0;    // sends
    std::size_t discarded_ = 0;  // messages without a receive, or whose receive failed
    TimePoint now_{};
    bool closed_ = false;  // by this side, before the peer was cut off
};

}  // namespace

bool accepts_engine(std::span<const std::byte> input) {
    return Play(input).run();
}

}  // namespace nexar::fuzz

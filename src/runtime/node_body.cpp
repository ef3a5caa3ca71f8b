#include "runtime/node_body.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/settings.hpp"
#include "base/try.hpp"
#include "link/carriers.hpp"
#include "runtime/join/addresses.hpp"
#include "runtime/node_access.hpp"
#include "runtime/progress_options.hpp"
#include "runtime/seed_body.hpp"
#include "runtime/spare_tasks.hpp"

namespace nexar::runtime {

Result<std::shared_ptr<Loop>> make_loop(const NodeOptions& options) {
    auto loop = std::make_shared<Loop>();
    NEXAR_TRY_VALUE(progress, Progress::make(progress_options(options)));
    loop->progress = std::move(progress);
    return loop;
}

}  // namespace nexar::runtime

namespace nexar::detail {

namespace {

// A closed link lingers for at most two seconds; the rest is for a busy machine.
constexpr Duration kCloseTime = std::chrono::seconds(10);

using AllocateShared = decltype(engine::EngineOptions::allocate_shared);

engine::EngineOptions engine_options(const NodeBody::Setup& setup, Recorder& recorder,
                                     AllocateShared allocate_shared) {
    engine::EngineOptions options;
    options.allocate_shared = std::move(allocate_shared);
    options.recorder = &recorder;
    options.max_pending = setup.options.max_pending;
    const RpcOptions& rpc = setup.options.rpc;
    options.calls.max_request = rpc.max_request;
    options.calls.max_response = rpc.max_response;
    options.calls.max_in_flight = rpc.max_in_flight;
    options.calls.max_held = rpc.max_held;
    // Random, so that nobody can choose tags that share a bucket.
    const NodeId random = setup.services.new_node_id().value();
    for (const std::byte b : random.bytes()) {
        options.hash_seed = options.hash_seed * 257 + static_cast<std::uint8_t>(b);
    }
    return options;
}

}  // namespace

NodeBody::NodeBody(std::shared_ptr<runtime::Loop> loop, const Setup& setup)
    : loop_(std::move(loop)),
      pool_(setup.config ? pool_profile(*setup.config) : PoolProfile::training()),
      recorder_(setup.config ? recorder_options(*setup.config) : RecorderOptions{}),
      engine_(engine_options(setup, recorder_,
                             [this](std::size_t bytes) { return allocate_shared(bytes); }),
              pool_),
      mesh_(engine_, *this, setup.mesh),
      signer_(setup.signer),
      offers_(engine_),
      membership_(engine_),
      looks_at_once_(setup.options.waiting != Waiting::sleep),
      config_(setup.config),
      options_(setup.options),
      services_(setup.services) {
    if (setup.credentials) identity_ = setup.credentials->identity();
}

Result<std::shared_ptr<NodeBody>> NodeBody::open(std::shared_ptr<runtime::Loop> loop,
                                                 const Setup& setup) {
    std::shared_ptr<NodeBody> body(new NodeBody(std::move(loop), setup));
    link::CarrierOptions options{.local = setup.listen,
                                 .credentials = setup.credentials,
                                 .settings = setup.link,
                                 .wall_clock = setup.services.wall_clock,
                                 .random = setup.services.link_random};
    if (setup.options.unprotected) options.settings.protection = port::Protection::none;
    auto further = link::open_further_carriers(body->pool_, options);
    NEXAR_TRY_VALUE(carrier, link::open_carrier(body->pool_, std::move(options)));
    body->owned_carriers_.push_back(std::move(carrier));
    for (link::FurtherCarrier& one : further) {
        body->offers_.add(one.kind, *one.carrier);
        body->owned_carriers_.push_back(std::move(one.carrier));
    }
    for (const auto& one : body->owned_carriers_) body->carriers_.push_back(one.get());
    body->mesh_.set_addresses(runtime::reachable_addresses(body->address()));
    NEXAR_TRY(body->progress().add(*body));
    ++body->loop_->nodes;
    return body;
}

OwnedContext::~OwnedContext() {
    if (node_ != nullptr) node_->end(*context_);
}

NodeBody::~NodeBody() {
    NEXAR_ASSERT(carriers_.empty() || closed_, "a node must be closed before it is destroyed");
    if (world_) world_->disown();
    while (const auto task = spare_tasks_.try_pop()) delete *task;
}

TaskOwner NodeBody::make_task(std::shared_ptr<CommunicatorBody> communicator) {
    Task* spare = take_spare_task();
    if (spare == nullptr) spare = spare_tasks_.try_pop().value_or(nullptr);
    TaskOwner task(spare != nullptr ? spare : new Task);
    task->communicator = std::move(communicator);
    return task;
}

void NodeBody::keep(Task* task) noexcept {
    task->clear();
    if (!keep_spare_task(task) && !spare_tasks_.try_push(task)) delete task;
}

void NodeBody::end(engine::Context& context) noexcept {
    if (progress().forked()) return;  // the parent ends it
    const NodeAccess access(*this);
    access->end_context(context);
}

bool NodeBody::take_events(TimePoint now) {
    bool any = false;
    while (auto event = first().poll_event()) {
        any = true;
        if (overlay_ && overlay_->take(now, *event)) continue;
        const bool of_seed = seed_ && seed_->handle(now, *event);
        if (!of_seed && !mesh_.handle(now, *event)) engine_.handle(*event);
        if (std::holds_alternative<port::Down>(event->what)) first().forget(event->link);
    }
    any = take_further_events(now) || any;
    if (seed_) follow_seed(now);
    mesh_.turn(now);
    offers_.turn(now);
    if (membership_.begun()) follow_members(now);
    if (overlay_) {
        carry_path_requests(now);
        any = overlay_->turn(now) || any;
    }
    if (!formed_told_) look_whether_formed();
    return any;
}

bool NodeBody::take_further_events(TimePoint now) {
    bool any = false;
    for (std::size_t i = 1; i < carriers_.size(); ++i) {
        while (const auto event = carriers_[i]->poll_event()) {
            any = true;
            engine_.handle(*event);
            offers_.handle(now, *event);
            if (std::holds_alternative<port::Down>(event->what)) carriers_[i]->forget(event->link);
        }
    }
    return any;
}

bool NodeBody::on_ready(TimePoint now) {
    bool any = false;
    for (std::size_t i = 1; i < carriers_.size(); ++i) any = carriers_[i]->on_ready(now) || any;
    // Looking at the first carrier takes a system call, at the others only a look at memory. While
    // nothing moves on the first, a driver that does not sleep looks at it only now and then, and
    // even less often if it yields: with 4 ranks on 2 cores that halves the time of small
    // collectives.
    constexpr Duration kActive = std::chrono::microseconds(500);
    constexpr Duration kPause = std::chrono::microseconds(20);
    constexpr Duration kCrowdedPause = std::chrono::microseconds(200);
    const Duration pause = progress().crowded() ? kCrowdedPause : kPause;
    const bool looks = carriers_.size() == 1 || std::exchange(slept_, false) ||
                       now - first_looked_ >= pause || now - first_active_ < kActive;
    if (!looks) return any;
    first_looked_ = now;
    if (!first().on_ready(now)) return any;
    first_active_ = now;
    first_came_ = true;
    return true;
}

Result<std::shared_ptr<port::SharedMemory>> NodeBody::allocate_shared(std::size_t bytes) {
    for (port::Carrier* const one : carriers_) {
        auto made = one->allocate(bytes);
        if (made || made.error().code() != Errc::unsupported) return made;
    }
    return Error(Errc::unsupported, "this node has no links that share memory");
}

bool NodeBody::fall_asleep() noexcept {
    slept_ = true;
    // Peers wake this node from now on, so what they wrote before must be seen now.
    return Driven::fall_asleep() && !engine_.poll_memory();
}

void NodeBody::flush(TimePoint now) {
    for (port::Carrier* const one : carriers_) one->flush(now);
}

// Timers can wait for the next turn. Returns whether the links need no turn because of this.
bool NodeBody::flush_unsent(TimePoint now) {
    bool quiet = true;
    for (port::Carrier* const one : carriers_) {
        if (!one->has_unsent()) continue;
        one->flush(now);
        // The first carrier sets timers when it sends, and an answer may come.
        const bool is_first = one == carriers_.front();
        if (is_first) first_active_ = now;
        quiet = quiet && !is_first && !one->flush_is_urgent(now);
    }
    return quiet;
}

/// When the engine or the membership has something to do. Links and the mesh can wait for the next
/// turn.
std::optional<TimePoint> NodeBody::own_deadline() const noexcept {
    const auto engine = engine_.next_deadline();
    const auto members = membership_.next_deadline();
    if (!engine || !members) return engine ? engine : members;
    return std::min(*engine, *members);
}

bool NodeBody::tell_ended() {
    bool any = false;
    while (engine::Operation* operation = engine_.poll_done()) {
        any = true;
        Task& task = *static_cast<Task*>(operation->owner);
        if (task.counted) started_more_ = true;  // the end of its first part starts the second
        if (!task.ended(*operation, engine_)) continue;
        complete(task);
    }
    look_at_abort();
    if (closing_ && !idle_told_ && all_idle()) {
        idle_told_ = true;
        progress().complete(idle_);
    }
    return any;
}

void NodeBody::settle(TimePoint now) noexcept {
    bool quiet = true;
    do {
        started_more_ = false;
        if (engine_.has_wanted()) {
            mesh_.turn(now);
            quiet = false;
        }
        quiet = flush_unsent(now) && quiet;
        tell_ended();
    } while (started_more_);
    if (dispatch_calls(now)) quiet = false;
    if (quiet) progress().stay_quiet(own_deadline());
}

bool NodeBody::send_at_once(engine::Context& context, Rank to, Tag tag, port::ConstBytes content) {
    const runtime::Progress::FreeGuard guard(progress());
    if (!guard.locked() || !engine_.send_at_once(context, to, tag, content)) return false;
    // The message is on its way; everything below is done while it travels.
    const TimePoint time = now();
    engine_.record_sent(time, context, to, tag, content.size());
    if (flush_unsent(time)) progress().stay_quiet(std::nullopt);
    return true;
}

void NodeBody::start_by_poster(Task& task) noexcept {
    // Only operations have a communicator with a context: a wait for failures has none.
    const bool published = task.what == Task::What::collective &&
                           engine_.publish(*task.communicator->context, *task.collective);
    // A published collective is visible to the other ranks; the rest is done while they read it.
    const TimePoint time = now();
    if (published) {
        engine_.enter_published(time, *task.collective);
    } else {
        engine_.advance(time);
        task.start(engine_);
    }
    if (task.what == Task::What::collective) look_at_once(*task.collective);
    settle(time);
    if (published && task.completion.done()) progress().looked_in_place(time);
}

// A collective in shared memory usually ends within the time that a thread needs to begin to wait,
// so the caller looks for the other ranks' parts right away.
void NodeBody::look_at_once(const engine::CollectiveOperation& operation) noexcept {
    constexpr int kLooks = 64;
    // Nodes of one loop cannot proceed meanwhile.
    if (!looks_at_once_ || !operation.in_memory_queue || loop_->nodes > 1) return;
    for (int i = 0; i < kLooks && operation.active; ++i) {
        if (engine_.poll_memory()) continue;
        if (progress().lock_is_wanted() || progress().crowded()) return;
    }
}

bool NodeBody::turn(TimePoint now) noexcept {
    advance_calls(now);
    const bool arrived = on_ready(now);
    const bool moved = engine_.poll_memory();
    return finish_turn(now) || arrived || moved;
}

bool NodeBody::look(TimePoint now) noexcept {
    if (first().wants_write()) return turn(now);
    engine_.set_recording_time(now);
    const std::uint64_t rare = engine_.rare_frames();
    first_came_ = false;
    const bool arrived = on_ready(now);
    if (!engine_.poll_memory() && !arrived) return false;
    // Usually the thread that waited for this arrival is the driver, and its answer carries our
    // acknowledgement. If not, the next driver sends it: at the latest the background thread, the
    // second time it looks.
    const bool urgent = std::ranges::any_of(
        carriers_, [&](const port::Carrier* one) { return one->flush_is_urgent(now); });
    if (!urgent && tell_ended()) {
        const bool called = dispatch_calls(now);
        if (started_more_) {
            settle(now);
            return true;
        }
        const bool unsent = std::ranges::any_of(carriers_, &port::Carrier::has_unsent);
        // Otherwise there is nothing to acknowledge, and nothing for other parts of the node.
        if (!called && !unsent && !first_came_ && rare == engine_.rare_frames()) {
            progress().stay_quiet(own_deadline());
        }
        return true;
    }
    finish_turn(now);
    return true;
}

bool NodeBody::finish_turn(TimePoint now) {
    first().set_crowded(progress().crowded());
    flush(now);
    bool any = take_events(now);
    if (any) flush(now);
    any = tell_ended() || any;
    any = dispatch_calls(now) || any;
    if (started_more_) settle(now);
    return any;
}

/// Under the lock: ends all operations; the links end when everything written has arrived.
void NodeBody::begin_closing() {
    if (closing_.exchange(true)) return;
    // Peers must see an abort as an abort, not as a member that left.
    const auto why = engine_.aborted() ? std::nullopt : formation_failure_;
    end_failures(Error(Errc::closed, "the node was closed"));
    look_at_waiters();
    if (seed_) seed_->close(why);
    const bool left = membership_.leaving();
    mesh_.close(why.value_or(Error(Errc::closed, "the node was closed")), left);
    engine_.close(why, left);
}

void NodeBody::close() {
    if (rpc_ && rpc_->runs_here()) {
        throw Error(Errc::reentrant_call,
                    "a node cannot be closed by a function that it serves, because closing waits "
                    "for that function; close it from another thread");
    }
    leave_cluster();
    {
        const NodeAccess access(*this);
        if (closing_) return;
        begin_closing();
    }
    if (!progress().wait(idle_, now() + kCloseTime)) {
        NEXAR_LOG_ERROR(
            "a node closed before all its links had ended; {} operations are still pending",
            engine_.pending());
    }
    close_calls();
    progress().remove(*this);
    closed_ = true;
    if (const runtime::Progress::Guard guard(progress()); engine_.pending() == 0) {
        // Handles of communicators may outlive this call by far.
        engine_.release_memory();
    }
    if (companion_) companion_->close();
    if (--loop_->nodes == 0) progress().stop();
}

void NodeBody::let_go(std::shared_ptr<NodeBody> body) {
    if (!body) return;
    if (body->progress().forked()) return runtime::keep_in_child(std::move(body));
    body->close();
}

}  // namespace nexar::detail

#include "runtime/node_body.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "runtime/context_id.hpp"

namespace nexar::runtime {

Result<std::shared_ptr<Loop>> make_loop(const NodeOptions& options) {
    auto loop = std::make_shared<Loop>();
    NEXAR_TRY_VALUE(progress, Progress::make({.drive = options.progressing == Progressing::user_loop
                                                           ? Progress::Drive::user_loop
                                                           : Progress::Drive::background,
                                              .spin = options.spin}));
    loop->progress = std::move(progress);
    return loop;
}

}  // namespace nexar::runtime

namespace nexar::detail {

namespace {

// Links flush for two seconds at most when they are closed; the rest is for a busy machine.
constexpr Duration kCloseTime = std::chrono::seconds(10);

engine::EngineOptions engine_options(const NodeBody::Setup& setup) {
    engine::EngineOptions options;
    options.max_pending = setup.options.max_pending;
    const RpcOptions& rpc = setup.options.rpc;
    options.calls.max_request = rpc.max_request;
    options.calls.max_response = rpc.max_response;
    options.calls.max_in_flight = rpc.max_in_flight;
    options.calls.max_held = rpc.max_held;
    // The node id is random, so that nobody can choose tags that meet in one bucket.
    for (const std::byte b : setup.credentials->identity().node.bytes()) {
        options.hash_seed = options.hash_seed * 257 + static_cast<std::uint8_t>(b);
    }
    return options;
}

}  // namespace

NodeBody::NodeBody(std::shared_ptr<runtime::Loop> loop, const Setup& setup)
    : loop_(std::move(loop)),
      pool_(PoolProfile::training()),
      engine_(engine_options(setup), pool_),
      cluster_(setup.credentials->identity().cluster),
      options_(setup.options) {}

Result<std::shared_ptr<NodeBody>> NodeBody::open(std::shared_ptr<runtime::Loop> loop,
                                                 const Setup& setup) {
    std::shared_ptr<NodeBody> body(new NodeBody(std::move(loop), setup));
    quic::EndpointOptions endpoint;
    endpoint.credentials = setup.credentials;
    if (setup.options.unprotected) endpoint.link.protection = quic::Protection::none;
    NEXAR_TRY_VALUE(carrier,
                    quic::UdpCarrier::open(setup.listen, body->pool_, std::move(endpoint)));
    body->carrier_ = std::move(carrier);
    body->carriers_ = {body->carrier_.get()};
    NEXAR_TRY(body->progress().add(*body));
    ++body->loop_->nodes;
    return body;
}

NodeBody::~NodeBody() {
    NEXAR_ASSERT(carrier_ == nullptr || closed_, "a node is closed before it ends");
    while (const auto task = spare_tasks_.try_pop()) delete *task;
}

Result<void> NodeBody::form(std::span<const runtime::Member> members, Rank me) {
    const runtime::Progress::Guard guard(progress());
    for (const runtime::Member& member : members) members_.push_back(member.node);
    const wire::ContextOrigin origin{.epoch = Epoch(1)};
    world_ = &engine_.add_context(runtime::context_id(cluster_, origin), members_, me, origin);
    engine_.calls().set_world(*world_);
    for (std::uint32_t rank = 0; rank < me.value(); ++rank) {
        NEXAR_TRY(carrier_->endpoint().dial(now(), members[rank].address,
                                            {.cluster = cluster_, .node = members[rank].node}));
    }
    settle(now());
    look_whether_formed();  // alone it is already
    return {};
}

void NodeBody::look_whether_formed() {
    if (formed_told_ || members_.empty()) return;
    if (links_up_ + 1 < members_.size() && !failed_dial_) return;
    formed_told_ = true;
    progress().complete(formed_);
}

Result<void> NodeBody::wait_formed(TimePoint deadline) {
    if (!progress().wait(formed_, deadline)) {
        return Error(Errc::timed_out,
                     fmt::format("only {} of {} other members are connected; look at their logs",
                                 links_up_, members_.size() - 1),
                     {.host = address().text(), .operation = "join"});
    }
    if (failed_dial_) return *failed_dial_;
    return {};
}

TaskOwner NodeBody::make_task(std::shared_ptr<CommunicatorBody> communicator) {
    const auto spare = spare_tasks_.try_pop();
    TaskOwner task(spare ? *spare : new Task);
    task->communicator = std::move(communicator);
    return task;
}

void NodeBody::keep(Task* task) noexcept {
    task->clear();
    if (!spare_tasks_.try_push(task)) delete task;
}

void NodeBody::end(engine::Context& context) noexcept {
    if (progress().forked()) return;  // it is the parent's to end
    const runtime::Progress::Guard guard(progress());
    engine_.end_context(context);
    settle(now());
}

bool NodeBody::take_events() {
    bool any = false;
    while (const auto event = carrier_->poll_event()) {
        any = true;
        if (std::holds_alternative<port::Up>(event->what)) ++links_up_;
        engine_.handle(*event);
        if (const auto* down = std::get_if<port::Down>(&event->what)) {
            if (!formed_told_) failed_dial_ = down->reason;
            carrier_->forget(event->link);
        }
    }
    if (any) look_whether_formed();
    return any;
}

bool NodeBody::tell_ended() {
    bool any = false;
    while (engine::Operation* operation = engine_.poll_done()) {
        any = true;
        Task& task = *static_cast<Task*>(operation->owner);
        // From here on it may be used for something else.
        if (task.ended(*operation)) progress().complete(task.completion);
    }
    if (closing_ && !idle_told_ && engine_.idle()) {
        idle_told_ = true;
        progress().complete(idle_);
    }
    return any;
}

void NodeBody::settle(TimePoint now) noexcept {
    carrier_->flush(now);
    tell_ended();
    dispatch_calls(now);
}

bool NodeBody::turn(TimePoint now) noexcept {
    const std::uint64_t before = carrier_->socket().counts().datagrams_in;
    advance_calls(now);
    carrier_->on_ready(now);
    carrier_->flush(now);
    bool any = take_events();
    if (any) carrier_->flush(now);
    any = tell_ended() || any;
    any = dispatch_calls(now) || any;
    return any || carrier_->socket().counts().datagrams_in != before;
}

void NodeBody::close() {
    if (rpc_ && rpc_->runs_here()) {
        throw Error(Errc::reentrant_call,
                    "a node cannot be closed by a function that it serves, because closing waits "
                    "for that function; close it from another thread");
    }
    {
        const runtime::Progress::Guard guard(progress());
        if (std::exchange(closing_, true)) return;
        engine_.close();
        settle(now());
    }
    if (!progress().wait(idle_, now() + kCloseTime)) {
        NEXAR_LOG_ERROR("a node did not get rid of its links in time; {} operations are left",
                        engine_.pending());
    }
    close_calls();
    progress().remove(*this);
    closed_ = true;
    if (--loop_->nodes == 0) progress().stop();
}

}  // namespace nexar::detail

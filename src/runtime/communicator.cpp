#include <fmt/format.h>

#include <limits>
#include <nexar/communicator.hpp>

#include "runtime/node_body.hpp"
#include "runtime/task.hpp"

namespace nexar {

void detail::refuse_negative_tag(std::int64_t tag) {
    throw Error(
        Errc::invalid_argument,
        fmt::format("the tag {} is negative; tags go from 0 to 2^64 - 1, and any_tag lets a "
                    "receive or a probe take every tag",
                    tag));
}

using detail::Task;
using detail::TaskOwner;

namespace {

Rank checked_rank(std::int64_t rank, const engine::Context& context, const char* operation) {
    if (rank < 0 || static_cast<std::uint64_t>(rank) >= context.pairs.size()) {
        throw Error(Errc::invalid_argument,
                    fmt::format("there is no rank {} in a communicator of {}; ranks go from 0 to "
                                "{}",
                                rank, context.pairs.size(), context.pairs.size() - 1),
                    {.operation = operation});
    }
    return Rank(static_cast<std::uint32_t>(rank));
}

engine::Pattern checked_pattern(const SourcePattern& from, const TagPattern& tag,
                                const engine::Context& context, const char* operation) {
    engine::Pattern pattern;
    if (const auto rank = from.rank()) {
        pattern.source = checked_rank(*rank, context, operation);
    }
    pattern.tag = tag.tag();
    return pattern;
}

template <class AnyBuffer>
std::size_t checked_bytes(const AnyBuffer& buffer, const char* operation) {
    const std::size_t element = size_of(buffer.dtype);
    if (element == 0 || buffer.count > std::numeric_limits<std::int64_t>::max() / element) {
        throw Error(
            Errc::invalid_argument,
            fmt::format("{} elements of type {} are no buffer", buffer.count, name(buffer.dtype)),
            {.operation = operation});
    }
    if (buffer.data == nullptr && buffer.count != 0) {
        throw Error(Errc::invalid_argument,
                    fmt::format("a buffer of {} elements has no memory", buffer.count),
                    {.operation = operation});
    }
    return buffer.count * element;
}

TaskOwner new_task(std::shared_ptr<detail::CommunicatorBody> body, Task::What what) {
    detail::NodeBody& node = *body->node;
    TaskOwner task = node.make_task(std::move(body));
    task->what = what;
    return task;
}

template <class T>
Work<T> started(TaskOwner task) {
    Task& posted = *task;
    posted.node().progress().post(posted);
    return Work<T>(std::move(task));
}

void set_options(Task& task, const SendOptions& options) {
    task.send.priority = static_cast<port::Priority>(options.priority);
    task.send.synchronous = options.synchronous;
}

void set_outgoing(Task& task, const ConstBuffer& elements, const SendOptions& options) {
    task.outgoing = {static_cast<const std::byte*>(elements.data), checked_bytes(elements, "send")};
    task.send.content = {&task.outgoing, 1};
    set_options(task, options);
}

void set_incoming(Task& task, const Buffer& elements) {
    task.incoming = {static_cast<std::byte*>(elements.data), checked_bytes(elements, "recv")};
    task.receive.content = {&task.incoming, 1};
    task.receive.only_take = false;
}

}  // namespace

int Communicator::rank() const noexcept {
    return static_cast<int>(body()->context->me.value());
}

int Communicator::size() const noexcept {
    return static_cast<int>(body()->context->pairs.size());
}

int Communicator::host(int rank) const {
    const Rank checked = checked_rank(rank, *body()->context, "host");
    return static_cast<int>(body()->context->collectives.profile.links.host(checked.value()));
}

void Communicator::abort(int code, std::string why) const {
    body()->node->abort(code, why);
}

Work<> Communicator::send(const ConstBuffer& elements, int to, TagValue tag, SendOptions options) {
    TaskOwner task = new_task(body(), Task::What::send);
    set_outgoing(*task, elements, options);
    task->send.to = checked_rank(to, *body()->context, "send");
    task->send.tag = tag.tag();
    return started<void>(std::move(task));
}

Work<> Communicator::send_iov(std::span<const ConstRegion> regions, int to, TagValue tag,
                              SendOptions options) {
    TaskOwner task = new_task(body(), Task::What::send);
    task->outgoing_list.clear();
    for (const ConstRegion region : regions) {
        if (!region.empty()) task->outgoing_list.push_back(region);
    }
    task->send.content = task->outgoing_list;
    set_options(*task, options);
    task->send.to = checked_rank(to, *body()->context, "send_iov");
    task->send.tag = tag.tag();
    return started<void>(std::move(task));
}

Work<Status> Communicator::recv(const Buffer& elements, SourcePattern from, TagPattern tag) {
    TaskOwner task = new_task(body(), Task::What::receive);
    set_incoming(*task, elements);
    task->receive.pattern = checked_pattern(from, tag, *body()->context, "recv");
    return started<Status>(std::move(task));
}

Work<Status> Communicator::recv_iov(std::span<const Region> regions, SourcePattern from,
                                    TagPattern tag) {
    TaskOwner task = new_task(body(), Task::What::receive);
    task->incoming_list.clear();
    for (const Region region : regions) {
        if (!region.empty()) task->incoming_list.push_back(region);
    }
    task->receive.content = task->incoming_list;
    task->receive.only_take = false;
    task->receive.pattern = checked_pattern(from, tag, *body()->context, "recv_iov");
    return started<Status>(std::move(task));
}

Work<Status> Communicator::send_recv(const ConstBuffer& outgoing, int to, const Buffer& incoming,
                                     SourcePattern from, TagValue tag) {
    TaskOwner task = new_task(body(), Task::What::send_and_receive);
    task->parts = 2;
    set_outgoing(*task, outgoing, {});
    set_incoming(*task, incoming);
    task->send.to = checked_rank(to, *body()->context, "send_recv");
    task->send.tag = tag.tag();
    task->receive.pattern = checked_pattern(from, tag, *body()->context, "send_recv");
    return started<Status>(std::move(task));
}

Work<Status> Communicator::probe(SourcePattern from, TagPattern tag) {
    TaskOwner task = new_task(body(), Task::What::probe);
    task->probe.pattern = checked_pattern(from, tag, *body()->context, "probe");
    return started<Status>(std::move(task));
}

Work<Message> Communicator::matched_probe(SourcePattern from, TagPattern tag) {
    TaskOwner task = new_task(body(), Task::What::receive);
    task->receive.only_take = true;
    task->receive.pattern = checked_pattern(from, tag, *body()->context, "matched_probe");
    return started<Message>(std::move(task));
}

std::optional<Status> Communicator::try_probe(SourcePattern from, TagPattern tag) {
    detail::NodeBody& node = *body()->node;
    const auto pattern = checked_pattern(from, tag, *body()->context, "try_probe");
    const auto found = [&] {
        const runtime::Progress::Guard guard(node.progress());
        node.turn(node.now());
        node.check_not_aborted("try_probe");
        return node.engine().look(*body()->context, pattern);
    }();
    if (!found) return std::nullopt;
    return detail::status_of(*found);
}

std::optional<Message> Communicator::try_matched_probe(SourcePattern from, TagPattern tag) {
    detail::NodeBody& node = *body()->node;
    const auto pattern = checked_pattern(from, tag, *body()->context, "try_matched_probe");
    const runtime::Progress::Guard guard(node.progress());
    node.turn(node.now());
    node.check_not_aborted("try_matched_probe");
    engine::InMessage* message = node.engine().take(*body()->context, pattern);
    if (message == nullptr) return std::nullopt;
    node.settle(node.now());
    return Message(
        Message::Owner(new detail::MessageBody{.communicator = body(), .message = message}),
        detail::status_of(engine::envelope_of(*message)));
}

Work<Status> Message::recv(const Buffer& into) && {
    if (!body_) throw Error(Errc::invalid_argument, "the message was received already");
    TaskOwner task = new_task(body_->communicator, Task::What::message);
    set_incoming(*task, into);
    task->message = std::exchange(body_->message, nullptr);
    body_.reset();
    return started<Status>(std::move(task));
}

}  // namespace nexar

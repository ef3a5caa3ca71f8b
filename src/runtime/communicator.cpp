#include <fmt/format.h>

#include <limits>
#include <nexar/communicator.hpp>

#include "runtime/node_access.hpp"
#include "runtime/task.hpp"

namespace nexar {

void detail::refuse_negative_tag(std::int64_t tag) {
    throw Error(Errc::invalid_argument, fmt::format("the tag {} is negative; tags go from 0 to "
                                                    "2^64 - 1, and any_tag matches every tag in a "
                                                    "receive or probe",
                                                    tag));
}

void detail::refuse_negative_count(std::size_t rank, long long count) {
    throw Error(Errc::invalid_argument,
                fmt::format("the count or displacement of rank {} is {}; it must be at least 0",
                            rank, count));
}

using detail::Task;
using detail::TaskOwner;

namespace {

Rank checked_rank(int rank, const engine::Context& context, const char* operation) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= context.pairs.size()) {
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

Error nothing_to_take(const char* operation) {
    return {Errc::invalid_argument,
            "a matched probe from no_rank can never find a message",
            {.operation = operation}};
}

template <class AnyBuffer>
std::size_t checked_bytes(const AnyBuffer& buffer, const char* operation) {
    const std::size_t element = buffer.element_size();
    if (element == 0 || buffer.count > std::numeric_limits<std::int64_t>::max() / element) {
        throw Error(Errc::invalid_argument,
                    fmt::format("a buffer of {} elements of type {} with {} bytes "
                                "each is not valid",
                                buffer.count, name(buffer.dtype), element),
                    {.operation = operation});
    }
    if (buffer.data == nullptr && buffer.count != 0) {
        throw Error(Errc::invalid_argument,
                    fmt::format("a buffer of {} elements has a null pointer", buffer.count),
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

TaskOwner started(TaskOwner task) {
    task->node().progress().post(*task);
    return task;
}

Work<Status> started_receive(TaskOwner task) {
    return Work<Status>(started(std::move(task)), &detail::take_status);
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

int Collectives::this_rank() const noexcept {
    return public_rank(body()->context->me);
}

int Collectives::world_size() const noexcept {
    return static_cast<int>(body()->context->pairs.size());
}

int Communicator::host(int rank) const {
    const Rank checked = checked_rank(rank, *body()->context, "host");
    return static_cast<int>(body()->context->collectives.profile.links.host(checked.value()));
}

void Communicator::abort(int code, std::string why) const {
    body()->node->abort(code, why);
}

TaskOwner Communicator::start_send(const ConstBuffer& elements, int to, TagValue tag,
                                   SendOptions options, std::unique_ptr<detail::Held> held) const {
    const port::ConstBytes content{static_cast<const std::byte*>(elements.data),
                                   checked_bytes(elements, "send")};
    if (to == no_rank) return nullptr;
    detail::CommunicatorBody& here = *body();
    const Rank rank = checked_rank(to, *here.context, "send");
    if (!options.synchronous && here.node->send_at_once(*here.context, rank, tag.tag(), content)) {
        return TaskOwner(&detail::sent_task());
    }
    TaskOwner task = new_task(body(), Task::What::send);
    set_outgoing(*task, elements, options);
    task->send.to = rank;
    task->send.tag = tag.tag();
    task->held = std::move(held);
    return started(std::move(task));
}

Work<> Communicator::send_list(std::vector<ConstRegion> regions, int to, TagValue tag,
                               SendOptions options) const {
    if (to == no_rank) return {};
    TaskOwner task = new_task(body(), Task::What::send);
    std::erase_if(regions, [](ConstRegion region) { return region.empty(); });
    task->outgoing_list = std::move(regions);
    task->send.content = task->outgoing_list;
    set_options(*task, options);
    task->send.to = checked_rank(to, *body()->context, "send_iov");
    task->send.tag = tag.tag();
    return Work<>(started(std::move(task)));
}

TaskOwner Communicator::start_recv(const Buffer& elements, SourcePattern from, TagPattern tag,
                                   std::unique_ptr<detail::Held> held) const {
    TaskOwner task = new_task(body(), Task::What::receive);
    set_incoming(*task, elements);
    if (from.rank() == no_rank) return nullptr;
    task->receive.pattern = checked_pattern(from, tag, *body()->context, "recv");
    task->held = std::move(held);
    return started(std::move(task));
}

Work<Status> Communicator::recv_list(std::vector<Region> regions, SourcePattern from,
                                     TagPattern tag) const {
    if (from.rank() == no_rank) return {};
    TaskOwner task = new_task(body(), Task::What::receive);
    std::erase_if(regions, [](Region region) { return region.empty(); });
    task->incoming_list = std::move(regions);
    task->receive.content = task->incoming_list;
    task->receive.only_take = false;
    task->receive.pattern = checked_pattern(from, tag, *body()->context, "recv_iov");
    return started_receive(std::move(task));
}

Work<Status> Communicator::send_recv(const ConstBuffer& outgoing, int to, const Buffer& incoming,
                                     SourcePattern from, TagValue tag) const {
    if (to == no_rank) return recv(incoming, from, tag);
    const bool receives = from.rank() != no_rank;
    TaskOwner task = new_task(body(), receives ? Task::What::send_and_receive : Task::What::send);
    set_outgoing(*task, outgoing, {});
    set_incoming(*task, incoming);
    task->send.to = checked_rank(to, *body()->context, "send_recv");
    task->send.tag = tag.tag();
    if (receives) {
        task->parts = 2;
        task->receive.pattern = checked_pattern(from, tag, *body()->context, "send_recv");
    } else {
        task->status = {.source = no_rank};
    }
    return started_receive(std::move(task));
}

Work<Status> Communicator::probe(SourcePattern from, TagPattern tag) const {
    if (from.rank() == no_rank) return {};
    TaskOwner task = new_task(body(), Task::What::probe);
    task->probe.pattern = checked_pattern(from, tag, *body()->context, "probe");
    return started_receive(std::move(task));
}

Work<Message> Communicator::matched_probe(SourcePattern from, TagPattern tag) const {
    TaskOwner task = new_task(body(), Task::What::receive);
    task->receive.only_take = true;
    if (from.rank() == no_rank) throw nothing_to_take("matched_probe");
    task->receive.pattern = checked_pattern(from, tag, *body()->context, "matched_probe");
    return Work<Message>(started(std::move(task)), &detail::take_message);
}

std::optional<Status> Communicator::try_probe(SourcePattern from, TagPattern tag) const {
    if (from.rank() == no_rank) return Status{.source = no_rank};
    detail::NodeBody& node = *body()->node;
    const auto pattern = checked_pattern(from, tag, *body()->context, "try_probe");
    const auto found = [&] {
        const detail::NodeAccess access(node);
        node.turn(access.now());
        node.check_not_aborted("try_probe");
        return access->look(*body()->context, pattern);
    }();
    if (!found) return std::nullopt;
    return detail::status_of(*found);
}

std::optional<Message> Communicator::try_matched_probe(SourcePattern from, TagPattern tag) const {
    detail::NodeBody& node = *body()->node;
    if (from.rank() == no_rank) throw nothing_to_take("try_matched_probe");
    const auto pattern = checked_pattern(from, tag, *body()->context, "try_matched_probe");
    const detail::NodeAccess access(node);
    node.turn(access.now());
    node.check_not_aborted("try_matched_probe");
    engine::InMessage* message = access->take(*body()->context, pattern);
    if (message == nullptr) return std::nullopt;
    return Message(
        Message::Owner(new detail::MessageBody{.communicator = body(), .message = message}),
        detail::status_of(engine::envelope_of(*message)));
}

Work<Status> Message::recv(const Buffer& into) && {
    if (!body_) throw Error(Errc::invalid_argument, "the message has already been received");
    TaskOwner task = new_task(body_->communicator, Task::What::message);
    set_incoming(*task, into);
    task->message = std::exchange(body_->message, nullptr);
    body_.reset();
    return started_receive(std::move(task));
}

}  // namespace nexar

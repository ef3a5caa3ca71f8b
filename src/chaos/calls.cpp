#include "chaos/calls.hpp"

#include <cstring>
#include <utility>

#include "base/mix.hpp"
#include "compute/reduce.hpp"

namespace nexar::chaos {

namespace {

/// Longer than any run: an operation that does not end breaks a rule, not its timeout.
constexpr Duration kTimeout = std::chrono::hours(1);
constexpr Tag kTag{7};

std::uint64_t word_of(const NodeId& node) {
    std::uint64_t number = 0;
    std::memcpy(&number, node.bytes().data(), sizeof number);
    return number;
}

std::unique_ptr<Call> collective_call(schedule::Collective what, Words in, std::size_t results) {
    auto call = std::make_unique<Call>();
    call->what = Call::What::collective;
    call->in = std::move(in);
    call->out.resize(results);
    call->collective = std::make_unique<engine::CollectiveOperation>();
    engine::CollectiveOperation& operation = *call->collective;
    operation.terms = {.what = what,
                       .dtype = DType::u64,
                       .element_bytes = sizeof(std::uint64_t),
                       .count = call->in.size()};
    operation.input.push_back(std::as_writable_bytes(std::span(call->in)));
    operation.output.push_back(std::as_writable_bytes(std::span(call->out)));
    operation.timeout = kTimeout;
    operation.owner = call.get();
    return call;
}

}  // namespace

engine::Operation& Call::operation() noexcept {
    switch (what) {
        case What::collective:
            return *collective;
        case What::send:
            return *send;
        case What::receive:
            return *receive;
        case What::agreement:
            break;
    }
    return *agreement;
}

std::unique_ptr<Call> reduce_call(const engine::Context& context, ReduceOp op, Words in) {
    const std::size_t count = in.size();
    auto call = collective_call(schedule::Collective::all_reduce, std::move(in), count);
    call->collective->terms.operator_name = "reduce";
    call->collective->reducer = compute::reducer_for(DType::u64, op).value();
    call->collective->chunks =
        schedule::Chunks::even(count, static_cast<std::uint32_t>(context.pairs.size()));
    return call;
}

std::unique_ptr<Call> gather_call(const engine::Context& context, std::uint64_t word) {
    const std::size_t ranks = context.pairs.size();
    auto call = collective_call(schedule::Collective::all_gather, {word}, ranks);
    call->collective->chunks = schedule::Chunks::even(ranks, static_cast<std::uint32_t>(ranks));
    return call;
}

std::unique_ptr<Call> send_call(Rank to, Words content) {
    auto call = std::make_unique<Call>();
    call->what = Call::What::send;
    call->in = std::move(content);
    call->sent.push_back(std::as_bytes(std::span(call->in)));
    call->send = std::make_unique<engine::SendOperation>();
    call->send->to = to;
    call->send->tag = kTag;
    call->send->content = call->sent;
    call->send->owner = call.get();
    return call;
}

std::unique_ptr<Call> receive_call(Rank from, const NodeId& peer, std::size_t words) {
    auto call = std::make_unique<Call>();
    call->what = Call::What::receive;
    call->out.resize(words);
    call->peer = peer;
    call->received.push_back(std::as_writable_bytes(std::span(call->out)));
    call->receive = std::make_unique<engine::ReceiveOperation>();
    call->receive->pattern = {.source = from, .tag = kTag};
    call->receive->content = call->received;
    call->receive->owner = call.get();
    return call;
}

Share share_of(const NodeId& node, ContextId context, std::uint64_t round) {
    const std::uint64_t first = mixed(word_of(node) ^ mixed(context.value() ^ mixed(round)));
    return {.first = first, .step = mixed(first) | 1U};
}

Words letter(const NodeId& from, ContextId context, std::uint64_t number, std::size_t words) {
    Words all(words);
    all[0] = word_of(from);
    all[1] = context.value();
    all[2] = number;
    const Share share = share_of(from, context, number);
    for (std::size_t i = 3; i < words; ++i) all[i] = share[i];
    return all;
}

}  // namespace nexar::chaos

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/identity.hpp"
#include "engine/agreement.hpp"
#include "engine/collective.hpp"
#include "engine/context.hpp"
#include "engine/operation.hpp"

namespace nexar::chaos {

using Words = std::vector<std::uint64_t>;

/// An operation in flight, with its memory.
struct Call {
    enum class What : std::uint8_t { collective, send, receive, agreement };

    What what = What::collective;
    std::string text{};  // for messages
    TimePoint began{};
    Words in{};
    Words out{};
    std::vector<port::ConstBytes> sent{};
    std::vector<port::Bytes> received{};
    std::unique_ptr<engine::CollectiveOperation> collective{};
    std::unique_ptr<engine::SendOperation> send{};
    std::unique_ptr<engine::ReceiveOperation> receive{};
    std::unique_ptr<engine::AgreeOperation> agreement{};
    NodeId peer{};  // of a receive

    engine::Operation& operation() noexcept;
};

/// An all-reduce of words.
std::unique_ptr<Call> reduce_call(const engine::Context& context, ReduceOp op, Words in);
/// Gathers one word of each rank.
std::unique_ptr<Call> gather_call(const engine::Context& context, std::uint64_t word);
std::unique_ptr<Call> send_call(Rank to, Words content);
std::unique_ptr<Call> receive_call(Rank from, const NodeId& peer, std::size_t words);

/// What a node contributes to a sum; all nodes can compute that of all others. Elements differ by a
/// step of its own for each node, so that an element in the wrong place is seen in the sum, and the
/// sum of all nodes takes no longer to compute than one of them.
struct Share {
    std::uint64_t first = 0;
    std::uint64_t step = 0;

    std::uint64_t operator[](std::size_t i) const noexcept { return first + i * step; }
};
Share share_of(const NodeId& node, ContextId context, std::uint64_t round);
/// The content of message `number` of a pair.
Words letter(const NodeId& from, ContextId context, std::uint64_t number, std::size_t words);

}  // namespace nexar::chaos

#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "compute/reduce.hpp"
#include "hostile.hpp"

/// Collectives with a peer that violates the protocol, in a communicator of two, so that every
/// message of a schedule goes to that peer or comes from it.
namespace nexar::engine {

using wire::PayloadPlace;

inline constexpr ContextId kDuo{9};
inline constexpr std::uint64_t kLaneBytes = std::uint64_t{64} << 10U;

inline EngineOptions collective_options() {
    EngineOptions options = small_options();
    options.collectives.bulk_head = 1024;
    options.collectives.max_early = 8;
    options.collectives.max_answers = 8;
    return options;
}

inline schedule::Profile collective_profile(std::string forced = {}) {
    return {.forced = std::move(forced), .eager_bytes = 256};
}

/// Describes a call: sets all fields of an operation except its memory.
using Starter = std::function<void(CollectiveOperation&)>;

inline Starter broadcast_call(std::uint64_t bytes, Rank root = kHostile, std::uint32_t world = 2) {
    return [=](CollectiveOperation& operation) {
        operation.terms = {.what = schedule::Collective::broadcast,
                           .dtype = DType::u8,
                           .root = root.value(),
                           .count = bytes};
        operation.chunks = schedule::Chunks::even(bytes, world);
    };
}

inline Starter barrier_call(std::uint32_t world = 2) {
    return [=](CollectiveOperation& operation) {
        operation.terms = {.what = schedule::Collective::barrier};
        operation.chunks = schedule::Chunks::even(0, world);
    };
}

/// Reduces 32-bit numbers in place; this rank is the root.
inline Starter sum_call(std::uint64_t count) {
    return [=](CollectiveOperation& operation) {
        operation.terms = {.what = schedule::Collective::reduce,
                           .dtype = DType::i32,
                           .element_bytes = 4,
                           .operator_name = "sum",
                           .root = kMe.value(),
                           .count = count};
        operation.reducer = compute::reducer_for(DType::i32, ReduceOp::sum).value();
        operation.in_place = true;
        operation.chunks = schedule::Chunks::even(count, 2);
    };
}

/// An all_to_all that receives `bytes` from the peer and sends it nothing.
inline Starter exchange_call(std::uint64_t bytes) {
    return [=](CollectiveOperation& operation) {
        operation.terms = {.what = schedule::Collective::all_to_all,
                           .dtype = DType::u8,
                           .has_counts = true,
                           .count = 0};
        operation.chunks = schedule::Chunks::of(std::array<std::uint64_t, 2>{0, 0});
        operation.receives = schedule::Chunks::of(std::array<std::uint64_t, 2>{0, bytes});
    };
}

class HostileCollective : public HostilePeer {
protected:
    HostileCollective() : HostilePeer(collective_options()) {
        duo_ = &engine_->add_context(kDuo, std::array{node(0), node(1)}, kMe);
        for (Context* const context : {duo_, world_}) {
            context->collectives.set_profile(collective_profile());
        }
        says(Lane::eager, begins(kDuo, kHostile, 2));
    }

    Asked& call_in(Context& context, std::size_t bytes, const Starter& call) {
        return call_with(context, Bytes(bytes), call);
    }
    /// `memory` is the initial content of the output.
    Asked& call_with(Context& context, const Bytes& memory, const Starter& call) {
        Asked& asked = asked_.emplace_back(memory.size());
        std::ranges::copy(memory, asked.memory.begin());
        asked.collective.owner = &asked;
        call(asked.collective);
        asked.collective.output = {asked.region};
        asked.collective.timeout = std::chrono::seconds(60);
        engine_->start(context, asked.collective);
        pump();
        return asked;
    }
    Asked& broadcast(std::size_t bytes) { return call_in(*duo_, bytes, broadcast_call(bytes)); }
    Asked& barrier() { return call_in(*duo_, 0, barrier_call()); }

    /// The fingerprint of call `number` in a communicator of two on a rank that makes the same
    /// call.
    std::uint64_t fingerprint(const Starter& call, std::uint64_t number) {
        Engine other(collective_options(), pool_);
        Context& context = other.add_context(kDuo, std::array{node(0), node(1)}, kMe);
        context.collectives.set_profile(collective_profile());
        std::deque<CollectiveOperation> operations;
        Bytes memory(kLaneBytes);
        for (std::uint64_t i = 0; i <= number; ++i) {
            CollectiveOperation& operation = operations.emplace_back();
            i == number ? call(operation) : barrier_call()(operation);
            const std::uint64_t bytes = operation.terms.count * size_of(operation.terms.dtype);
            operation.output = {port::Bytes(memory).first(static_cast<std::size_t>(bytes))};
            operation.timeout = std::chrono::seconds(60);
            other.start(context, operation);
        }
        other.close();
        while (other.poll_done() != nullptr) {
        }
        return operations.back().terms.fingerprint;
    }

    static wire::CollectiveHeader part(std::uint64_t sequence, std::uint64_t operation,
                                       std::uint64_t size, std::uint64_t print,
                                       PayloadPlace place = PayloadPlace::lane) {
        return {.context = kDuo,
                .sequence = Sequence(sequence),
                .operation = operation,
                .size = size,
                .fingerprint = print,
                .place = place};
    }

    /// Delivers a header, followed by its payload if that travels on the lane.
    void says_part(const wire::CollectiveHeader& header) {
        Bytes bytes = said(header);
        if (header.place == PayloadPlace::lane) bytes = bytes + payload_of(header);
        says(Lane::eager, bytes);
    }
    static Bytes payload_of(const wire::CollectiveHeader& header) {
        return pattern(header.operation + 1, static_cast<std::size_t>(header.size));
    }

    static Bytes part_stream(std::uint64_t sequence, ContextId context = kDuo) {
        return said(wire::Preamble{
            .lane = wire::Lane::collective, .context = context, .sequence = Sequence(sequence)});
    }

    void says_abort(std::uint64_t operation, const std::string& text, Rank rank = kHostile,
                    bool gone = false) {
        says(Lane::eager, said(wire::CollectiveAbort{.context = kDuo,
                                                     .operation = operation,
                                                     .code = Errc::invalid_argument,
                                                     .rank = rank,
                                                     .gone = gone,
                                                     .text = text}));
    }
    void says_mismatch(std::uint64_t operation, const std::string& description,
                       std::uint64_t expects = 0) {
        says(Lane::eager, said(wire::CollectiveMismatch{.context = kDuo,
                                                        .operation = operation,
                                                        .expects = expects,
                                                        .description = description}));
    }

    void expect_succeeded(const Asked& asked, const Bytes& content) {
        ASSERT_EQ(asked.ended, 1);
        EXPECT_FALSE(asked.error()) << asked.error()->what();
        EXPECT_EQ(asked.memory, content);
    }
    void expect_failed(const Asked& asked, Errc code, std::string_view text) {
        ASSERT_EQ(asked.ended, 1) << text;
        ASSERT_TRUE(asked.error());
        EXPECT_EQ(asked.error()->code(), code);
        EXPECT_THAT(asked.error()->what(), ::testing::HasSubstr(text));
    }

    void pass(Duration time) {
        now_ += time;
        engine_->advance(now_);
        pump();
    }

    /// The frames of one type that the engine wrote to the eager lane of a peer.
    template <class Message>
    static std::vector<Message> frames_sent_to(const FakeLink& link) {
        return nexar::testing::frames_of<Message>(link.written(Lane::eager));
    }

    Context* duo_ = nullptr;
    TimePoint now_{};
};

}  // namespace nexar::engine

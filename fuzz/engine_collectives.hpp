#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "base/pool_profile.hpp"
#include "compute/reduce.hpp"
#include "engine/engine.hpp"
#include "engine_script.hpp"

namespace nexar::fuzz {

/// The peer knows the fingerprints of this many calls of a communicator.
inline constexpr std::uint64_t kNumbers = 8;

/// Small enough for a short input to reach every limit.
inline engine::CollectiveLimits collective_limits() {
    engine::CollectiveLimits limits;
    limits.bulk_head = 256;
    limits.max_early = 4;
    limits.max_answers = 4;
    return limits;
}

inline schedule::Profile collective_profile() {
    return {.eager_bytes = 64};
}

/// A collective between the two nodes, as rank 0 calls it.
struct Shape {
    enum class Kind : std::uint8_t { barrier, give, get, sum, exchange };
    static constexpr std::array<std::uint64_t, 6> kSizes{8, 0, 64, 200, 3000, 60000};
    static constexpr std::size_t kMostScratch = std::size_t{2} * 65536;

    Kind kind = Kind::barrier;
    std::uint64_t size = 0;

    /// The most that rank 1 sends.
    std::uint64_t bytes() const noexcept { return kind == Kind::barrier ? 0 : size; }

    std::size_t input() const noexcept {
        return static_cast<std::size_t>(kind == Kind::exchange ? size : 0);
    }
    std::size_t output() const noexcept {
        if (kind == Kind::barrier) return 0;
        // An exchange has 8 bytes of its own, and what the peer sends.
        return static_cast<std::size_t>(kind == Kind::exchange ? 8 + size : size);
    }

    void set(engine::CollectiveOperation& operation) const {
        using schedule::Chunks;
        using schedule::Collective;
        auto& terms = operation.terms;
        terms = {.dtype = DType::u8, .count = size};
        operation.chunks = Chunks::even(size, 2);
        if (kind == Kind::barrier) {
            terms = {.what = Collective::barrier};
            operation.chunks = Chunks::even(0, 2);
        } else if (kind == Kind::sum) {
            terms = {.what = Collective::all_reduce,
                     .dtype = DType::i32,
                     .element_bytes = 4,
                     .operator_name = "sum",
                     .count = size / 4};
            operation.reducer = compute::reducer_for(DType::i32, ReduceOp::sum).value();
            operation.in_place = true;
            operation.chunks = Chunks::even(size / 4, 2);
        } else if (kind == Kind::exchange) {
            terms.what = Collective::all_to_all;
            terms.has_counts = true;
            const std::uint64_t own = size < 8 ? 0 : 8;
            operation.chunks = Chunks::of(std::array{own, size - own});
            operation.receives = Chunks::of(std::array{own, size + 8 - own});
        } else {
            terms.what = Collective::broadcast;
            terms.root = kind == Kind::get ? 1 : 0;
        }
        operation.timeout = std::chrono::seconds(20);
    }
};

inline Shape script_shape(Script& script) {
    const unsigned kind = script.byte();
    return {.kind = static_cast<Shape::Kind>(kind % 5),
            .size = Shape::kSizes[script.byte() % Shape::kSizes.size()]};
}

/// The fingerprint of such a call on all ranks, as call `number` of its communicator.
inline std::uint64_t fingerprint(const Shape& shape, std::uint64_t number) {
    if (number >= kNumbers) return 0;
    static std::map<std::array<std::uint64_t, 3>, std::uint64_t> known;
    const std::array key{static_cast<std::uint64_t>(shape.kind), shape.size, number};
    if (const auto found = known.find(key); found != known.end()) return found->second;
    BufferPool pool(PoolProfile::inference());
    engine::EngineOptions options;
    options.collectives = collective_limits();
    engine::Engine other(options, pool);
    std::array<std::byte, NodeId::kBytes> name{};
    name.back() = std::byte{1};
    engine::Context& context =
        other.add_context(kFirstContext, std::array{NodeId(), NodeId(name)}, Rank(0));
    context.collectives.set_profile(collective_profile());
    std::deque<engine::CollectiveOperation> calls(static_cast<std::size_t>(number) + 1);
    std::vector<std::byte> input(shape.input());
    std::vector<std::byte> output(shape.output());
    for (engine::CollectiveOperation& call : calls) {
        const bool last = &call == &calls.back();
        (last ? shape : Shape()).set(call);
        if (last) {
            call.input = {input};
            call.output = {output};
        }
        other.start(context, call);
    }
    other.close();
    while (other.poll_done() != nullptr) {
    }
    return known[key] = calls.back().terms.fingerprint;
}

}  // namespace nexar::fuzz

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "compute/reduce.hpp"
#include "engine/memory_executor.hpp"
#include "schedule/memory_cost.hpp"
#include "unit/engine/heap_segment.hpp"
#include "unit/engine/shared_parts.hpp"
#include "unit/schedule/cases.hpp"
#include "unit/schedule/expected.hpp"
#include "unit/schedule/interpreter.hpp"

namespace nexar::testing {

inline std::unique_ptr<engine::MemoryExecutor> executor_of(
    const std::vector<std::shared_ptr<HeapSegment>>& all, std::uint32_t me,
    const TestBuffers* buffers = nullptr) {
    const auto layout = engine::MemoryLayout::of(all[me]->bytes().size());
    return std::make_unique<engine::MemoryExecutor>(
        engine::MemorySegments(all[me], others_of(all, me), me, layout.value()), buffers);
}

/// The smallest segment.
constexpr std::size_t kBytes = engine::MemoryLayout::kLeastBytes;

/// Goes on until the state changes, at most so often that giving up is noticed.
inline engine::MemoryExecutor::State settle(engine::MemoryExecutor& executor) {
    using State = engine::MemoryExecutor::State;
    State state = State::waiting;
    for (int i = 0; i < 1000 && state == State::waiting; ++i) state = executor.advance();
    return state;
}

/// Folds 64-bit numbers with an operator of the tests of schedules.
class NumberFold final : public compute::UserFold {
public:
    explicit NumberFold(schedule::testing::Operator op) : op_(op) {}

    void fold(std::byte* out, const std::byte* a, const std::byte* b,
              std::size_t count) const override {
        for (std::size_t i = 0; i < count; ++i) {
            std::uint64_t x = 0;
            std::uint64_t y = 0;
            std::memcpy(&x, a + i * sizeof(x), sizeof(x));
            std::memcpy(&y, b + i * sizeof(y), sizeof(y));
            x = op_(x, y);
            std::memcpy(out + i * sizeof(x), &x, sizeof(x));
        }
    }

private:
    schedule::testing::Operator op_;
};

/// One rank's part in a collective in memory: its buffers, its plan and its expected result.
class MemoryPart {
public:
    static constexpr std::uint32_t kElement = 8;

    /// With `pieces` > 1 its buffers consist of several pieces of memory.
    MemoryPart(const schedule::testing::Case& c, std::uint32_t rank, std::size_t pieces = 1,
               const Sharing& sharing = {})
        : case_(c),
          rank_(rank),
          asked_(schedule::testing::requests(c)),
          reducer_(DType::u64, kElement,
                   std::make_shared<NumberFold>(schedule::testing::operator_for(c)), false),
          plan_(c.algorithm->build(asked_[rank]), *c.algorithm, asked_[rank], kElement),
          input_(input_of(asked_[rank]).space == schedule::Space::input
                     ? input_of(asked_[rank]).count
                     : 0,
                 rank, sharing, sharing.input),
          output_(output_of(asked_[rank]).count, rank, sharing, sharing.output) {
        const schedule::Slice in = input_of(asked_[rank]);
        std::ranges::fill(output_.elements(), ~std::uint64_t{0});
        const auto given = (in.space == schedule::Space::input ? input_ : output_).elements();
        for (std::uint64_t i = 0; i < in.count; ++i) {
            given[in.offset + i] = schedule::testing::element(rank, i);
        }
        add(schedule::Space::input, input_.elements(), sharing.input ? 1 : pieces);
        add(schedule::Space::output, output_.elements(), sharing.output ? 1 : pieces + 1);
    }

    const engine::MemoryPlan& plan() const noexcept { return plan_; }

    engine::MemoryCall call(std::uint64_t number, std::uint64_t fingerprint = 1) const {
        engine::MemoryCall made{.plan = &plan_,
                                .number = number,
                                .fingerprint = fingerprint,
                                .memory = &memory_,
                                .reducer = &reducer_};
        for (std::uint32_t stage = 0; stage < plan_.stages(); ++stage) {
            const auto& slice = plan_.shown(stage);
            if (!slice) continue;
            const PartMemory& shown = slice->space == schedule::Space::input ? input_ : output_;
            if (shown.name() == 0) continue;
            shown_.at(stage) = {.name = shown.name(),
                                .offset = shown.begin() + slice->offset * kElement};
            made.shown = &shown_;
        }
        return made;
    }

    /// As a caller that uses its memory for something else after the operation.
    void spoil() const noexcept {
        input_.spoil();
        output_.spoil();
    }

    /// What is wrong with the result; empty if it is right.
    std::string wrong() const {
        if (case_.algorithm->operation == schedule::Collective::exclusive_scan && rank_ == 0) {
            return {};
        }
        const schedule::Slice result = result_of(asked_[rank_]);
        const auto want = schedule::testing::expected(case_, asked_, rank_);
        for (std::uint64_t i = 0; i < result.count; ++i) {
            if (output_.elements()[result.offset + i] == want[i]) continue;
            return to_text(case_) + ": element " + std::to_string(i) + " of rank " +
                   std::to_string(rank_) + " is wrong";
        }
        const auto input = input_.elements();
        for (std::uint64_t i = 0; i < input.size(); ++i) {
            if (input[i] != schedule::testing::element(rank_, i)) return "the input changed";
        }
        return {};
    }

private:
    void add(schedule::Space space, std::span<std::uint64_t> rest, std::size_t pieces) {
        const std::size_t each = rest.size() / pieces;
        for (std::size_t i = 0; i + 1 < pieces; ++i) {
            memory_.space(space).add(std::as_writable_bytes(rest.first(each)));
            rest = rest.subspan(each);
        }
        memory_.space(space).add(std::as_writable_bytes(rest));
    }

    schedule::testing::Case case_;
    std::uint32_t rank_;
    std::vector<schedule::Request> asked_;
    compute::Reducer reducer_;
    engine::MemoryPlan plan_;
    PartMemory input_;
    PartMemory output_;
    engine::RunMemory memory_;
    mutable engine::ShownVectors shown_{};
};

/// The segment of an algorithm for this many elements, as choose() would give it.
inline schedule::testing::Case fitted(schedule::testing::Case c,
                                      const engine::MemoryLayout& layout) {
    const auto first = schedule::testing::requests(c).front();
    const schedule::Extent extent{
        .world = c.world,
        .bytes = static_cast<double>(first.chunks.total() * MemoryPart::kElement),
        .chunk = static_cast<double>(first.chunks.largest() * MemoryPart::kElement)};
    const auto fit = schedule::memory_segment(
        c.algorithm->traits, extent, MemoryPart::kElement,
        {.slot_bytes = layout.slot_bytes, .buffer_bytes = layout.buffer_bytes}, 0);
    EXPECT_TRUE(fit.fits) << to_text(c);
    c.segment = fit.segment;
    return c;
}

inline std::vector<const schedule::Algorithm*> algorithms_in_memory() {
    std::vector<const schedule::Algorithm*> all;
    for (const schedule::Algorithm& algorithm : schedule::algorithms()) {
        if (algorithm.traits.medium == schedule::Medium::memory) all.push_back(&algorithm);
    }
    return all;
}

}  // namespace nexar::testing

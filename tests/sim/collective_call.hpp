#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "engine/collective.hpp"
#include "support/collective_data.hpp"

namespace nexar::testing {

/// The arguments of a collective call, equal on all ranks.
struct CallTerms {
    schedule::Collective what = schedule::Collective::barrier;
    std::size_t count = 0;  // elements of a vector, or of a chunk
    bool in_place = false;
    bool uneven = false;  // chunks of different sizes, some of them empty
    bool floats = false;  // f32, else i32
    std::uint32_t root = 0;
    std::uint64_t seed = 1;
    Duration timeout = std::chrono::minutes(10);
};

/// The memory of one call on all ranks and its expected content at the end.
class CollectiveCall {
public:
    explicit CollectiveCall(const CallTerms& terms) : terms_(terms) {}
    virtual ~CollectiveCall() = default;
    CollectiveCall(const CollectiveCall&) = delete;
    CollectiveCall& operator=(const CollectiveCall&) = delete;

    const CallTerms& terms() const noexcept { return terms_; }

    /// Sets up `operation` as the call of that rank.
    virtual void fill(std::uint32_t rank, engine::CollectiveOperation& operation) = 0;
    /// Expects that a rank that succeeded has the right result and that its input is unchanged.
    virtual void expect_result(std::uint32_t rank) = 0;
    /// Overwrites the memory of the rank, which belongs to the caller again, so that a late read
    /// finds wrong data.
    virtual void overwrite(std::uint32_t rank) = 0;
    /// Expects that nothing has written to the memory since overwrite().
    virtual void expect_untouched(std::uint32_t rank) = 0;

private:
    CallTerms terms_;
};

/// How the data of a call is divided: chunk `to` of the data that rank `from` sends. The division
/// depends on `from` only in an all_to_all.
class Division {
public:
    Division(const CallTerms& terms, std::uint32_t world) : terms_(terms), world_(world) {}

    std::size_t count(std::uint32_t from, std::uint32_t to) const {
        if (!terms_.uneven) return terms_.count;
        // Symmetric, because an in-place exchange sends as much to a rank as it receives from it.
        const bool exchange = terms_.what == schedule::Collective::all_to_all;
        return terms_.count * ((exchange ? from + to : to) * 3 % 5) / 4;
    }
    std::size_t offset(std::uint32_t from, std::uint32_t to) const {
        std::size_t before = 0;
        for (std::uint32_t i = 0; i < to; ++i) before += count(from, i);
        return before;
    }
    std::size_t total(std::uint32_t from) const { return offset(from, world_); }

    schedule::Chunks chunks(std::uint32_t rank) const {
        std::vector<std::uint64_t> counts(world_);
        for (std::uint32_t i = 0; i < world_; ++i) {
            if (knows(rank, i)) counts[i] = count(rank, i);
        }
        return terms_.uneven ? schedule::Chunks::of(counts)
                             : schedule::Chunks::even(total(rank), world_);
    }

private:
    bool knows(std::uint32_t rank, std::uint32_t other) const {
        return !schedule::rooted(terms_.what) || rank == terms_.root || rank == other;
    }

    CallTerms terms_;
    std::uint32_t world_;
};

template <Element T>
class CollectiveCallOf final : public CollectiveCall {
public:
    CollectiveCallOf(const CallTerms& terms, std::uint32_t world)
        : CollectiveCall(terms), world_(world), division_(terms, world), given_(world) {
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            given_[rank] = elements<T>(Values::summable, terms.seed, rank, given_count(rank));
        }
        parts_.reserve(world);
        for (std::uint32_t rank = 0; rank < world; ++rank) parts_.push_back(part_of(rank));
    }

    void fill(std::uint32_t rank, engine::CollectiveOperation& operation) override {
        Part& part = parts_[rank];
        operation.terms = {.what = terms().what,
                           .dtype = dtype_of<T>,
                           .element_bytes = sizeof(T),
                           .root = terms().root,
                           .has_counts = terms().uneven,
                           .count = terms().uneven ? division_.total(rank) : terms().count};
        operation.reducer.reset();
        if (schedule::reduces(terms().what)) {
            operation.reducer = compute::reducer_for(dtype_of<T>, ReduceOp::sum).value();
            operation.terms.operator_name = "sum";
        }
        operation.in_place = part.in_place;
        operation.chunks =
            chunked() ? division_.chunks(rank) : schedule::Chunks::even(terms().count, world_);
        operation.receives = {};
        if (terms().what == Op::all_to_all) operation.receives = operation.chunks;
        operation.input.clear();
        operation.output.clear();
        operation.input.push_back(std::as_writable_bytes(std::span(part.in)));
        operation.output.push_back(std::as_writable_bytes(std::span(part.out)));
        operation.timeout = terms().timeout;
    }

    void expect_result(std::uint32_t rank) override {
        const Part& part = parts_[rank];
        const std::vector<T> want = wanted(rank);
        const auto got = std::span<const T>(part.out).subspan(part.result_at, want.size());
        expect_bits(rank, got, want);
        if (!part.in.empty()) expect_bits(rank, part.in, given_[rank]);
    }

    void overwrite(std::uint32_t rank) override {
        for (const auto memory : bytes_of(rank)) {
            std::ranges::fill(memory, std::byte{kOurs});
        }
    }

    void expect_untouched(std::uint32_t rank) override {
        for (const auto memory : bytes_of(rank)) {
            EXPECT_TRUE(
                std::ranges::all_of(memory, [](std::byte b) { return b == std::byte{kOurs}; }))
                << "written after the call had ended at rank " << rank;
        }
    }

private:
    using Op = schedule::Collective;
    static constexpr unsigned char kOurs = 0xa5;

    struct Part {
        std::vector<T> in{};
        std::vector<T> out{};
        bool in_place = false;
        std::size_t result_at = 0;
    };

    static void expect_bits(std::uint32_t rank, std::span<const T> got, std::span<const T> want) {
        if (got.size() == want.size() &&
            (got.empty() || std::memcmp(got.data(), want.data(), got.size_bytes()) == 0)) {
            return;
        }
        EXPECT_TRUE(same(rank, got, want));
        ADD_FAILURE() << "different bits at rank " << rank;
    }

    std::array<std::span<std::byte>, 2> bytes_of(std::uint32_t rank) {
        Part& part = parts_[rank];
        return {std::as_writable_bytes(std::span(part.in)),
                std::as_writable_bytes(std::span(part.out))};
    }

    bool is_root(std::uint32_t rank) const { return rank == terms().root; }
    bool gathers() const { return terms().what == Op::all_gather || terms().what == Op::gather; }
    bool scatters() const {
        return terms().what == Op::scatter || terms().what == Op::reduce_scatter;
    }
    bool chunked() const { return gathers() || scatters() || terms().what == Op::all_to_all; }

    std::size_t given_count(std::uint32_t rank) const {
        switch (terms().what) {
            case Op::barrier:
                return 0;
            case Op::broadcast:
                return is_root(rank) ? terms().count : 0;
            case Op::scatter:
                return is_root(rank) ? division_.total(rank) : 0;
            case Op::reduce_scatter:
            case Op::all_to_all:
                return division_.total(rank);
            case Op::all_gather:
            case Op::gather:
                return division_.count(rank, rank);
            default:
                return terms().count;
        }
    }

    std::size_t output_count(std::uint32_t rank) const {
        switch (terms().what) {
            case Op::barrier:
                return 0;
            case Op::reduce:
                return is_root(rank) ? terms().count : 0;
            case Op::gather:
                return is_root(rank) ? division_.total(rank) : 0;
            case Op::all_gather:
            case Op::all_to_all:
                return division_.total(rank);
            case Op::scatter:
            case Op::reduce_scatter:
                return division_.count(rank, rank);
            default:
                return terms().count;
        }
    }

    Part part_of(std::uint32_t rank) const {
        const std::vector<T>& given = given_[rank];
        Part part{.in = given, .out = room<T>(1, output_count(rank)).front()};
        if (terms().what == Op::broadcast) {
            part.in.clear();
            if (is_root(rank)) part.out = given;
            return part;
        }
        const bool here = terms().in_place && (!schedule::rooted(terms().what) || is_root(rank));
        if (!here || given.empty() || part.out.empty()) return part;
        part.in_place = true;
        part.in.clear();
        const std::size_t own = chunked() ? division_.offset(rank, rank) : 0;
        if (gathers()) {
            std::ranges::copy(given, part.out.begin() + static_cast<std::ptrdiff_t>(own));
        } else {
            part.out = given;
            if (scatters()) part.result_at = own;
        }
        return part;
    }

    /// The expected result; empty if the rank has none or it is undefined.
    std::vector<T> wanted(std::uint32_t rank) {
        switch (terms().what) {
            case Op::all_reduce:
                return sum_of(world_);
            case Op::reduce:
                return is_root(rank) ? sum_of(world_) : std::vector<T>{};
            case Op::scan:
                return sum_of(rank + 1);
            case Op::exclusive_scan:
                return rank == 0 ? std::vector<T>{} : sum_of(rank);
            case Op::reduce_scatter:
                return part(sum_of(world_), division_.offset(rank, rank),
                            division_.count(rank, rank));
            case Op::broadcast:
                return given_[terms().root];
            case Op::all_gather:
                return joined(given_);
            case Op::gather:
                return is_root(rank) ? joined(given_) : std::vector<T>{};
            case Op::scatter:
                return part(given_[terms().root], division_.offset(terms().root, rank),
                            division_.count(terms().root, rank));
            case Op::all_to_all:
                return exchanged(rank);
            case Op::barrier:
                break;
        }
        return {};
    }

    std::vector<T> exchanged(std::uint32_t rank) const {
        std::vector<T> all;
        for (std::uint32_t from = 0; from < world_; ++from) {
            const auto chunk =
                part(given_[from], division_.offset(from, rank), division_.count(from, rank));
            all.insert(all.end(), chunk.begin(), chunk.end());
        }
        return all;
    }

    /// The sum over the first `ranks` ranks.
    const std::vector<T>& sum_of(std::size_t ranks) {
        if (sums_.empty()) sums_.resize(world_ + 1);
        auto& sum = sums_[ranks];
        if (sum.empty()) sum = folded(ReduceOp::sum, given_, ranks);
        return sum;
    }

    std::uint32_t world_;
    Division division_;
    PerRank<T> given_;
    std::vector<Part> parts_;
    PerRank<T> sums_;
};

inline std::unique_ptr<CollectiveCall> make_call(const CallTerms& terms, std::size_t world) {
    const auto ranks = static_cast<std::uint32_t>(world);
    if (terms.floats) return std::make_unique<CollectiveCallOf<float>>(terms, ranks);
    return std::make_unique<CollectiveCallOf<std::int32_t>>(terms, ranks);
}

}  // namespace nexar::testing

#include "mixed_collective.hpp"

#include <span>
#include <string>
#include <utility>

#include "ranks.hpp"

namespace nexar::testing {

namespace {

/// The size of each rank's input, in chunks of `count`.
std::size_t chunks_in(Kind kind, std::size_t world) {
    switch (kind) {
        case Kind::scatter:
        case Kind::reduce_scatter:
        case Kind::all_to_all:
            return world;
        case Kind::barrier:
            return 0;
        default:
            return 1;
    }
}

std::size_t chunks_out(Kind kind, std::size_t world) {
    switch (kind) {
        case Kind::all_gather:
        case Kind::gather:
        case Kind::all_to_all:
            return world;
        case Kind::barrier:
            return 0;
        default:
            return 1;
    }
}

}  // namespace

MixedCollective::MixedCollective(Kind kind, std::uint64_t seed, std::size_t world,
                                 std::size_t count)
    : kind_(kind),
      world_(world),
      count_(count),
      root_(random_bits(seed, 7, 7) % world),
      in_(inputs<Number>(Values::distinct, seed, world, count * chunks_in(kind, world))),
      out_(room<Number>(world, count * chunks_out(kind, world))),
      want_(world) {
    expect();
    if (kind == Kind::all_reduce_in_place || kind == Kind::broadcast) out_ = in_;
}

MixedCollective MixedCollective::random(std::uint64_t seed, std::size_t world, std::size_t most) {
    const std::uint64_t bits = random_bits(seed, 1, 1);
    return {static_cast<Kind>(bits % kKinds), seed, world, (bits >> 8U) % most};
}

void MixedCollective::expect() {
    for (std::size_t rank = 0; rank < world_; ++rank) {
        auto& want = want_[rank];
        switch (kind_) {
            case Kind::all_reduce:
            case Kind::all_reduce_in_place:
                want = folded(ReduceOp::sum, in_);
                break;
            case Kind::reduce:
                if (rank == root_) want = folded(ReduceOp::sum, in_);
                break;
            case Kind::broadcast:
                want = in_[root_];
                break;
            case Kind::all_gather:
                want = joined(in_);
                break;
            case Kind::gather:
                if (rank == root_) want = joined(in_);
                break;
            case Kind::scatter:
                want = part(in_[root_], rank * count_, count_);
                break;
            case Kind::reduce_scatter:
                want = part(folded(ReduceOp::max, in_), rank * count_, count_);
                break;
            case Kind::all_to_all:
                for (const auto& from : in_) {
                    const auto chunk = part(from, rank * count_, count_);
                    want.insert(want.end(), chunk.begin(), chunk.end());
                }
                break;
            case Kind::scan:
                want = folded(ReduceOp::bit_xor, in_, rank + 1);
                break;
            case Kind::exclusive_scan:
                if (rank > 0) want = folded(ReduceOp::sum, in_, rank);
                break;
            case Kind::barrier:
                break;
        }
    }
}

Work<> MixedCollective::start(const Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const std::span<const Number> in(in_[rank]);
    const std::span out(out_[rank]);
    const int root = static_cast<int>(root_);
    switch (kind_) {
        case Kind::all_reduce:
            return communicator.all_reduce(in, out, sum);
        case Kind::all_reduce_in_place:
            return communicator.all_reduce(out, sum);
        case Kind::reduce:
            return communicator.reduce(in, out, sum, root);
        case Kind::broadcast:
            return communicator.broadcast(out, root);
        case Kind::all_gather:
            return communicator.all_gather(in, out);
        case Kind::gather:
            return communicator.gather(in, out, root);
        case Kind::scatter:
            return communicator.scatter(in, out, root);
        case Kind::reduce_scatter:
            return communicator.reduce_scatter(in, out, max);
        case Kind::all_to_all:
            return communicator.all_to_all(in, out);
        case Kind::scan:
            return communicator.scan(in, out, bit_xor);
        case Kind::exclusive_scan:
            return communicator.exclusive_scan(in, out, sum);
        case Kind::barrier:
            break;
    }
    return communicator.barrier();
}

::testing::AssertionResult MixedCollective::right(std::size_t rank) const {
    if (want_[rank].empty()) return ::testing::AssertionSuccess();
    auto verdict = same(rank, out_[rank], want_[rank]);
    if (!verdict) verdict << " (kind " << static_cast<int>(kind_) << ", root " << root_ << ")";
    return verdict;
}

void expect_every_kind_works(std::vector<Communicator>& ranks, std::uint64_t seed) {
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
        for (const std::size_t count : {1U, 500U}) {
            SCOPED_TRACE("kind " + std::to_string(kind) + " x " + std::to_string(count));
            MixedCollective collective(static_cast<Kind>(kind), seed + kind, ranks.size(), count);
            run(ranks, [&](Communicator& c, std::size_t) { return collective.start(c); });
            for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
                EXPECT_TRUE(collective.right(rank));
            }
        }
    }
}

}  // namespace nexar::testing

// Spanning tree: collectives of ranks in a sparse topology, where a message between two ranks
// without a link passes through others. The edges of the tree are links as far as possible, so
// nothing has to be relayed.
//
//     root 0 with children 3 and 2, 3 with children 1 and 4
//
//     broadcast              0 -> 3, 0 -> 2, then 3 -> 1, 3 -> 4
//     reduce                 4 -> 3, 1 -> 3, then 2 -> 0, 3 -> 0
//     all_reduce, barrier    the reduce, then the broadcast
//     scatter                0 -314-> 3, 0 -2-> 2, then 3 -1-> 1, 3 -4-> 4
//     gather                 1 -1-> 3, 4 -4-> 3, then 2 -2-> 0, 3 -314-> 0
//     all_gather             the gather, then the broadcast of all chunks
//
// All take d steps, or twice as many, where recursive doubling takes log2(n) steps of several hops.
// Chosen for small vectors; in segments also for larger ones. Folds do not keep the order of ranks.
//
// Terms: `in` and `out` are the rank's input and output; `packed` are the chunks of the ranks of a
// subtree in the order of their places, which SpanningTree defines.

#include "schedule/spanning.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "schedule/builder.hpp"
#include "schedule/layout.hpp"

namespace nexar::schedule::spanning {

namespace {

const SpanningTree& tree_of(const Request& request) {
    NEXAR_ASSERT(request.tree != nullptr && request.tree->world() == request.world);
    return *request.tree;
}

/// Every rank gets the slice of the root.
void pass_down(Builder& builder, const Request& request, const Slice& slice) {
    const SpanningTree& tree = tree_of(request);
    if (request.rank != tree.root()) builder.receive(tree.parent(request.rank), slice);
    for (const std::uint32_t child : tree.children(request.rank)) builder.send(child, slice);
}

/// Folds `in` of all ranks towards the root. A rank folds into `into`, or into scratch if that is
/// not given; the root must give it. The smallest subtrees come first: they are ready first.
void fold_up(Builder& builder, const Request& request, const Slice& in,
             const std::optional<Slice>& into) {
    const SpanningTree& tree = tree_of(request);
    const auto children = tree.children(request.rank);
    Slice current = in;
    for (std::size_t i = children.size(); i-- > 0;) {
        const Slice target = into ? *into : current == in ? builder.scratch(in.count) : current;
        builder.receive_reduce(children[i], target, current, compute::Side::right);
        current = target;
    }
    if (request.rank != tree.root())
        builder.send(tree.parent(request.rank), current);
    else if (into)
        builder.copy(current, *into);  // a world of one
}

/// Scratch for the chunks of a subtree; without that of the root of the tree, which has all chunks
/// in its own buffer.
class Packed {
public:
    Packed(Builder& builder, const Request& request)
        : tree_(tree_of(request)), first_(std::max(tree_.place(request.rank), 1U)) {
        const std::uint32_t end = tree_.place(request.rank) + tree_.size(request.rank);
        for (std::uint32_t place = first_; place < end; ++place)
            offsets_.push_back(offsets_.back() + request.chunks.count(tree_.rank_at(place)));
        slice_ = builder.scratch(offsets_.back());
    }

    const Slice& all() const noexcept { return slice_; }
    Slice of_rank(std::uint32_t rank) const { return places(tree_.place(rank), 1); }
    Slice of_subtree(std::uint32_t rank) const {
        return places(tree_.place(rank), tree_.size(rank));
    }

private:
    Slice places(std::uint32_t place, std::uint32_t count) const {
        const std::uint64_t offset = offsets_[place - first_];
        return part(slice_, offset, offsets_[place - first_ + count] - offset);
    }

    const SpanningTree& tree_;
    std::uint32_t first_;  // place
    std::vector<std::uint64_t> offsets_{0};
    Slice slice_;
};

/// Calls `each(rank)` for the ranks of a subtree.
template <class Each>
void for_subtree(const SpanningTree& tree, std::uint32_t top, const Each& each) {
    for (std::uint32_t i = 0; i < tree.size(top); ++i) each(tree.rank_at(tree.place(top) + i));
}

/// The root gets the chunks of all ranks in `out`.
void gather_up(Builder& builder, const Request& request, const Slice& in, const Slice& out) {
    const SpanningTree& tree = tree_of(request);
    const std::uint32_t rank = request.rank;
    const auto children = tree.children(rank);
    const bool root = rank == tree.root();
    if (children.empty() && !root) {
        builder.send(tree.parent(rank), in);
        return;
    }
    const Packed packed(builder, request);
    builder.copy(in, root ? chunk(out, request.chunks, rank) : packed.of_rank(rank));
    for (const std::uint32_t child : children) builder.receive(child, packed.of_subtree(child));
    if (!root) {
        builder.send(tree.parent(rank), packed.all());
        return;
    }
    for (const std::uint32_t child : children) {
        for_subtree(tree, child, [&](std::uint32_t owner) {
            builder.copy(packed.of_rank(owner), chunk(out, request.chunks, owner));
        });
    }
}

}  // namespace

// A rank sends S once per child.
Schedule broadcast(const Request& request) {
    Builder builder(request.segment);
    pass_down(builder, request, output_of(request));
    return std::move(builder).build();
}

// Each rank except the root sends S once.
Schedule reduce(const Request& request) {
    Builder builder(request.segment);
    const bool root = request.rank == tree_of(request).root();
    fold_up(builder, request, input_of(request),
            root ? std::optional(output_of(request)) : std::nullopt);
    return std::move(builder).build();
}

// A rank sends S once per neighbour in the tree.
Schedule all_reduce(const Request& request) {
    Builder builder(request.segment);
    fold_up(builder, request, input_of(request), output_of(request));
    pass_down(builder, request, output_of(request));
    return std::move(builder).build();
}

// A rank sends the chunks of its subtree; the root needs S of scratch. All ranks must know the
// sizes of all chunks.
Schedule gather(const Request& request) {
    Builder builder;
    gather_up(builder, request, input_of(request), output_of(request));
    return std::move(builder).build();
}

// The same in the other direction.
Schedule scatter(const Request& request) {
    const SpanningTree& tree = tree_of(request);
    const Slice in = input_of(request);
    const Slice out = result_of(request);
    const std::uint32_t rank = request.rank;
    const bool root = rank == tree.root();
    Builder builder;
    if (tree.children(rank).empty() && !root) {
        builder.receive(tree.parent(rank), out);
        return std::move(builder).build();
    }
    const Packed packed(builder, request);
    if (!root) builder.receive(tree.parent(rank), packed.all());
    for (const std::uint32_t child : tree.children(rank)) {
        if (root) {
            for_subtree(tree, child, [&](std::uint32_t owner) {
                builder.copy(chunk(in, request.chunks, owner), packed.of_rank(owner));
            });
        }
        builder.send(child, packed.of_subtree(child));
    }
    builder.copy(root ? chunk(in, request.chunks, rank) : packed.of_rank(rank), out);
    return std::move(builder).build();
}

// The gather to rank 0, then a broadcast in which every rank gets the chunks before its own and
// those after it. Ranks of the tree send S once per child.
Schedule all_gather(const Request& request) {
    const SpanningTree& tree = tree_of(request);
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const std::uint32_t rank = request.rank;
    const auto before = [&](std::uint32_t owner) {
        return chunk_range(out, request.chunks, 0, owner);
    };
    const auto after = [&](std::uint32_t owner) {
        return chunk_range(out, request.chunks, owner + 1, request.world);
    };
    Builder builder;
    gather_up(builder, request, in, out);
    if (rank != tree.root()) {
        builder.copy(in, chunk(out, request.chunks, rank));
        builder.receive(tree.parent(rank), before(rank));
        builder.receive(tree.parent(rank), after(rank));
    }
    for (const std::uint32_t child : tree.children(rank)) {
        builder.send(child, before(child));
        builder.send(child, after(child));
    }
    return std::move(builder).build();
}

// Every rank signals its parent when it has heard from its children; then the root signals its
// children, and they theirs. A signal to a child has to tell it that all ranks outside of its
// subtree have entered.
Schedule barrier(const Request& request) {
    const SpanningTree& tree = tree_of(request);
    const auto children = tree.children(request.rank);
    Builder builder;
    std::vector<Builder::StepId> heard;
    for (const std::uint32_t child : children) heard.push_back(builder.receive_signal(child));
    if (request.rank != tree.root()) {
        const std::uint32_t parent = tree.parent(request.rank);
        builder.after(builder.send_signal(parent), heard);
        heard.push_back(builder.receive_signal(parent));
    }
    for (std::size_t i = 0; i < children.size(); ++i) {
        std::vector<Builder::StepId> others = heard;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
        builder.after(builder.send_signal(children[i]), others);
    }
    return std::move(builder).build();
}

}  // namespace nexar::schedule::spanning

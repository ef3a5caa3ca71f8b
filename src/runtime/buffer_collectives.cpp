#include <nexar/buffer_collectives.hpp>
#include <utility>

namespace nexar {

using detail::Collective;

namespace {

detail::CollectiveCall folding(Collective operation, const ConstBuffer& in, const Buffer& out,
                               const Operator& op, CollectiveOptions options) {
    return {.operation = operation, .input = in, .output = out, .op = op, .options = options};
}

detail::CollectiveCall moving(Collective operation, const ConstBuffer& in, const Buffer& out,
                              CollectiveOptions options, int root = 0) {
    return {.operation = operation, .input = in, .output = out, .root = root, .options = options};
}

}  // namespace

Work<> BufferCollectives::barrier(CollectiveOptions options) const {
    return start({.operation = Collective::barrier, .options = options});
}

Work<> BufferCollectives::all_reduce(const Buffer& elements, const Operator& op,
                                     CollectiveOptions options) const {
    return all_reduce(elements, elements, op, options);
}

Work<> BufferCollectives::all_reduce(const ConstBuffer& in, const Buffer& out, const Operator& op,
                                     CollectiveOptions options) const {
    return start(folding(Collective::all_reduce, in, out, op, options));
}

Work<> BufferCollectives::all_reduce_buckets(std::vector<Buffer> buckets, const Operator& op,
                                             CollectiveOptions options) const {
    return start({.operation = Collective::all_reduce,
                  .buckets = std::move(buckets),
                  .op = op,
                  .options = options});
}

Work<> BufferCollectives::reduce(const ConstBuffer& in, const Buffer& out, const Operator& op,
                                 int root, CollectiveOptions options) const {
    return start({.operation = Collective::reduce,
                  .input = in,
                  .output = out,
                  .op = op,
                  .root = root,
                  .options = options});
}

Work<> BufferCollectives::scan(const ConstBuffer& in, const Buffer& out, const Operator& op,
                               CollectiveOptions options) const {
    return start(folding(Collective::scan, in, out, op, options));
}

Work<> BufferCollectives::exclusive_scan(const ConstBuffer& in, const Buffer& out,
                                         const Operator& op, CollectiveOptions options) const {
    return start(folding(Collective::exclusive_scan, in, out, op, options));
}

Work<> BufferCollectives::reduce_scatter(const ConstBuffer& in, const Buffer& out,
                                         const Operator& op, CollectiveOptions options) const {
    return start(folding(Collective::reduce_scatter, in, out, op, options));
}

Work<> BufferCollectives::reduce_scatter_v(const ConstBuffer& in, const Buffer& out,
                                           std::vector<std::size_t> counts, const Operator& op,
                                           CollectiveOptions options) const {
    return start({.operation = Collective::reduce_scatter,
                  .input = in,
                  .output = out,
                  .op = op,
                  .chunks = ChunkLayout{.counts = std::move(counts)},
                  .options = options});
}

Work<> BufferCollectives::broadcast(const Buffer& elements, int root,
                                    CollectiveOptions options) const {
    return start(
        {.operation = Collective::broadcast, .output = elements, .root = root, .options = options});
}

Work<> BufferCollectives::all_gather(const ConstBuffer& in, const Buffer& out,
                                     CollectiveOptions options) const {
    return start(moving(Collective::all_gather, in, out, options));
}

Work<> BufferCollectives::gather(const ConstBuffer& in, const Buffer& out, int root,
                                 CollectiveOptions options) const {
    return start(moving(Collective::gather, in, out, options, root));
}

Work<> BufferCollectives::scatter(const ConstBuffer& in, const Buffer& out, int root,
                                  CollectiveOptions options) const {
    return start(moving(Collective::scatter, in, out, options, root));
}

Work<> BufferCollectives::all_to_all(const ConstBuffer& in, const Buffer& out,
                                     CollectiveOptions options) const {
    return start(moving(Collective::all_to_all, in, out, options));
}

Work<> BufferCollectives::all_gather_v(const ConstBuffer& in, const Buffer& out, ChunkLayout layout,
                                       CollectiveOptions options) const {
    return start({.operation = Collective::all_gather,
                  .input = in,
                  .output = out,
                  .chunks = std::move(layout),
                  .options = options});
}

Work<> BufferCollectives::gather_v(const ConstBuffer& in, const Buffer& out, ChunkLayout layout,
                                   int root, CollectiveOptions options) const {
    return start({.operation = Collective::gather,
                  .input = in,
                  .output = out,
                  .root = root,
                  .chunks = std::move(layout),
                  .options = options});
}

Work<> BufferCollectives::scatter_v(const ConstBuffer& in, const Buffer& out, ChunkLayout layout,
                                    int root, CollectiveOptions options) const {
    return start({.operation = Collective::scatter,
                  .input = in,
                  .output = out,
                  .root = root,
                  .chunks = std::move(layout),
                  .options = options});
}

Work<> BufferCollectives::all_to_all_v(const ConstBuffer& in, ChunkLayout sends, const Buffer& out,
                                       ChunkLayout receives, CollectiveOptions options) const {
    return start({.operation = Collective::all_to_all,
                  .input = in,
                  .output = out,
                  .chunks = std::move(sends),
                  .receives = std::move(receives),
                  .options = options});
}

}  // namespace nexar

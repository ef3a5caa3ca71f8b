#pragma once

#include <memory>
#include <nexar/collective_call.hpp>
#include <span>
#include <utility>
#include <vector>

namespace nexar {

/// The collectives over buffers whose element type is known only at run time. Collectives documents
/// each operation; it has the same calls over typed ranges.
class NEXAR_EXPORT BufferCollectives {
public:
    /// Completes when every rank has called it.
    Work<> barrier(CollectiveOptions options = {}) const;

    Work<> all_reduce(const Buffer& elements, const Operator& op,
                      CollectiveOptions options = {}) const;
    Work<> all_reduce(const ConstBuffer& in, const Buffer& out, const Operator& op,
                      CollectiveOptions options = {}) const;
    Work<> all_reduce_buckets(std::vector<Buffer> buckets, const Operator& op,
                              CollectiveOptions options = {}) const;
    Work<> reduce(const ConstBuffer& in, const Buffer& out, const Operator& op, int root,
                  CollectiveOptions options = {}) const;
    Work<> scan(const ConstBuffer& in, const Buffer& out, const Operator& op,
                CollectiveOptions options = {}) const;
    Work<> exclusive_scan(const ConstBuffer& in, const Buffer& out, const Operator& op,
                          CollectiveOptions options = {}) const;
    Work<> reduce_scatter(const ConstBuffer& in, const Buffer& out, const Operator& op,
                          CollectiveOptions options = {}) const;
    Work<> reduce_scatter_v(const ConstBuffer& in, const Buffer& out,
                            std::vector<std::size_t> counts, const Operator& op,
                            CollectiveOptions options = {}) const;

    Work<> broadcast(const Buffer& elements, int root, CollectiveOptions options = {}) const;
    Work<> all_gather(const ConstBuffer& in, const Buffer& out,
                      CollectiveOptions options = {}) const;
    Work<> gather(const ConstBuffer& in, const Buffer& out, int root,
                  CollectiveOptions options = {}) const;
    Work<> scatter(const ConstBuffer& in, const Buffer& out, int root,
                   CollectiveOptions options = {}) const;
    Work<> all_to_all(const ConstBuffer& in, const Buffer& out,
                      CollectiveOptions options = {}) const;

    // Chunks of different sizes. `layout` describes `out` in a gather and `in` in a scatter.

    Work<> all_gather_v(const ConstBuffer& in, const Buffer& out, ChunkLayout layout,
                        CollectiveOptions options = {}) const;
    Work<> gather_v(const ConstBuffer& in, const Buffer& out, ChunkLayout layout, int root,
                    CollectiveOptions options = {}) const;
    Work<> scatter_v(const ConstBuffer& in, const Buffer& out, ChunkLayout layout, int root,
                     CollectiveOptions options = {}) const;
    Work<> all_to_all_v(const ConstBuffer& in, ChunkLayout sends, const Buffer& out,
                        ChunkLayout receives, CollectiveOptions options = {}) const;

protected:
    explicit BufferCollectives(std::shared_ptr<detail::CommunicatorBody> body) noexcept
        : body_(std::move(body)) {}

    const std::shared_ptr<detail::CommunicatorBody>& body() const noexcept { return body_; }

private:
    Work<> start(const detail::CollectiveCall& call) const {
        return Work<>(detail::start_collective(body_, call));
    }

    std::shared_ptr<detail::CommunicatorBody> body_;
};

}  // namespace nexar

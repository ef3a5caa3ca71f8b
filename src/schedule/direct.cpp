#include "schedule/direct.hpp"

#include "schedule/layout.hpp"
#include "schedule/tree_fold.hpp"

namespace nexar::schedule {

void direct_reduce_scatter(Builder& builder, const Group& group, const Chunks& parts,
                           const Slice& in, const Slice& own) {
    builder.among(group.ranks);
    for (std::uint32_t d = 1; d < group.size(); ++d) {
        const std::uint32_t peer = around(group.me, d, group.size());
        if (peer < parts.world()) builder.send(peer, chunk(in, parts, peer));
    }
    if (group.me >= parts.world()) return;
    TreeFold(builder, group.size(), group.me, chunk(in, parts, group.me), own).add();
}

void direct_all_gather(Builder& builder, const Group& group, const Chunks& parts,
                       const Slice& whole, std::uint32_t skipped) {
    builder.among(group.ranks);
    for (std::uint32_t d = 1; group.me < parts.world() && d < group.size(); ++d) {
        const std::uint32_t peer = around(group.me, d, group.size());
        if (peer != skipped) builder.send(peer, chunk(whole, parts, group.me));
    }
    for (std::uint32_t d = 1; group.me != skipped && d < group.size(); ++d) {
        const std::uint32_t peer = around(group.me, group.size() - d, group.size());
        if (peer < parts.world()) builder.receive(peer, chunk(whole, parts, peer));
    }
}

}  // namespace nexar::schedule

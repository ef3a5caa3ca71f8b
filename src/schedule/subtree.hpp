#pragma once

#include <array>
#include <cstdint>

#include "schedule/builder.hpp"
#include "schedule/layout.hpp"

namespace nexar::schedule {

/// Where a rank keeps the chunks of its subtree of a binomial tree: the root in `whole`, in the
/// order of ranks; other ranks in scratch, in the order of positions. Chunks that wrap around the
/// end of the world are two slices on all ranks, because they are two at the root.
class Subtree {
public:
    Subtree(Builder& builder, const Request& request, const Slice& whole)
        : request_(request),
          position_(distance(request.root, request.rank, request.world)),
          whole_(whole) {
        if (position_ == 0) return;
        const std::uint32_t size = Binomial(request.world, request.root).size(position_);
        whole_ = builder.scratch(elements(position_, size));
    }

    /// The chunks of `count` positions from `first` on; one or both slices may be empty.
    std::array<Slice, 2> slices(std::uint32_t first, std::uint32_t count) const {
        const auto both = spans(first, count);
        if (position_ == 0)
            return {chunk_range(whole_, request_.chunks, both[0].begin, both[0].end),
                    chunk_range(whole_, request_.chunks, both[1].begin, both[1].end)};
        const std::uint64_t before = elements(position_, first - position_);
        const std::uint64_t one = elements(both[0]);
        return {part(whole_, before, one), part(whole_, before + one, elements(both[1]))};
    }

    Slice own() const { return slices(position_, 1)[0]; }

private:
    std::array<Span, 2> spans(std::uint32_t first, std::uint32_t count) const {
        return spans_around(around(request_.root, first, request_.world), count, request_.world);
    }
    std::uint64_t elements(const Span& span) const {
        return request_.chunks.offset(span.end) - request_.chunks.offset(span.begin);
    }
    std::uint64_t elements(std::uint32_t first, std::uint32_t count) const {
        const auto both = spans(first, count);
        return elements(both[0]) + elements(both[1]);
    }

    const Request& request_;
    std::uint32_t position_;
    Slice whole_;
};

}  // namespace nexar::schedule

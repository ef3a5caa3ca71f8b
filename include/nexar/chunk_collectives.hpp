#pragma once

#include <cstddef>
#include <memory>
#include <nexar/collectives.hpp>
#include <utility>
#include <vector>

namespace nexar {

namespace detail {
using Counts = std::vector<std::size_t>;  // what `{1, 2, 3}` becomes
}

/// The v-variants: collectives over chunks of different sizes. `counts` has one integer of any type
/// per rank: the number of elements of its chunk. `displacements`, in the same form, has the offset
/// of each chunk in the longer buffer; without it the chunks are contiguous. Gaps between chunks
/// are left untouched.
///
/// The forms without an output are for ranks that do not know how much they will receive: the ranks
/// first exchange their counts, and the Work returns the chunks.
class NEXAR_EXPORT ChunkCollectives : public Collectives {
public:
    /// Like reduce_scatter(); every rank passes all `counts`.
    template <detail::AnyRange In, detail::AnyRange Out, detail::Integers C, detail::AnyValue Op>
    Work<> reduce_scatter_v(In&& in, Out&& out, const C& counts, const Op& op,
                            CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return reduce_scatter_v(both.in, both.out, detail::sizes_of(counts),
                                detail::operator_of<detail::ElementOf<Out>>(op), options);
    }
    using BufferCollectives::reduce_scatter_v;

    /// Like all_gather(); every rank passes all `counts`.
    template <detail::AnyRange In, detail::AnyRange Out, detail::Integers C = detail::Counts>
    Work<> all_gather_v(In&& in, Out&& out, const C& counts, CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return all_gather_v(both.in, both.out, detail::layout_of(counts), options);
    }
    template <detail::AnyRange In, detail::AnyRange Out, detail::Integers C = detail::Counts,
              detail::Integers D = detail::Counts>
    Work<> all_gather_v(In&& in, Out&& out, const C& counts, const D& displacements,
                        CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return all_gather_v(both.in, both.out, detail::layout_of(counts, displacements), options);
    }
    template <detail::AnyRange In>
    Work<Gathered<detail::ElementOf<In>>> all_gather_v(In&& in,
                                                       CollectiveOptions options = {}) const {
        return start_counted<detail::KeptChunks<detail::ElementOf<In>>>(
            std::forward<In>(in),
            {.operation = detail::Collective::all_gather, .options = options});
    }
    using BufferCollectives::all_gather_v;

    /// Like gather(); only the root uses the output, `counts` and `displacements`; other ranks may
    /// pass {}.
    template <detail::AnyRange In, detail::AnyRange Out = detail::NoOutput<In>,
              detail::Integers C = detail::Counts>
    Work<> gather_v(In&& in, Out&& out, const C& counts, int root,
                    CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return gather_v(both.in, both.out, detail::layout_of(counts), root, options);
    }
    template <detail::AnyRange In, detail::AnyRange Out = detail::NoOutput<In>,
              detail::Integers C = detail::Counts, detail::Integers D = detail::Counts>
    Work<> gather_v(In&& in, Out&& out, const C& counts, const D& displacements, int root,
                    CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return gather_v(both.in, both.out, detail::layout_of(counts, displacements), root, options);
    }
    /// Returns an empty result on ranks other than the root.
    template <detail::AnyRange In>
    Work<Gathered<detail::ElementOf<In>>> gather_v(In&& in, int root,
                                                   CollectiveOptions options = {}) const {
        return start_counted<detail::KeptChunks<detail::ElementOf<In>>>(
            std::forward<In>(in),
            {.operation = detail::Collective::gather, .root = root, .options = options});
    }
    using BufferCollectives::gather_v;

    /// Like scatter(); only the root uses the input, `counts` and `displacements`; other ranks may
    /// pass {}.
    template <detail::AnyRange Out, detail::AnyRange In = detail::NoInput<Out>,
              detail::Integers C = detail::Counts>
    Work<> scatter_v(In&& in, Out&& out, const C& counts, int root,
                     CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return scatter_v(both.in, both.out, detail::layout_of(counts), root, options);
    }
    template <detail::AnyRange Out, detail::AnyRange In = detail::NoInput<Out>,
              detail::Integers C = detail::Counts, detail::Integers D = detail::Counts>
    Work<> scatter_v(In&& in, Out&& out, const C& counts, const D& displacements, int root,
                     CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return scatter_v(both.in, both.out, detail::layout_of(counts, displacements), root,
                         options);
    }
    /// Returns this rank's chunk; only the root uses `in` and `counts`.
    template <detail::AnyRange In, detail::Integers C = detail::Counts>
    Work<std::vector<detail::ElementOf<In>>> scatter_v(In&& in, const C& counts, int root,
                                                       CollectiveOptions options = {}) const {
        return start_counted<detail::KeptChunk<detail::ElementOf<In>>>(
            std::forward<In>(in), {.operation = detail::Collective::scatter,
                                   .root = root,
                                   .chunks = detail::layout_of(counts),
                                   .options = options});
    }
    using BufferCollectives::scatter_v;

    /// Like all_to_all(); the number of elements that rank i sends to rank j must equal the number
    /// that j receives from i.
    template <detail::AnyRange In, detail::AnyRange Out, detail::Integers C = detail::Counts,
              detail::Integers D = detail::Counts>
    Work<> all_to_all_v(In&& in, const C& send_counts, Out&& out, const D& receive_counts,
                        CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return all_to_all_v(both.in, detail::layout_of(send_counts), both.out,
                            detail::layout_of(receive_counts), options);
    }
    template <detail::AnyRange In, detail::AnyRange Out, detail::Integers C, detail::Integers D,
              detail::Integers E, detail::Integers F>
    Work<> all_to_all_v(In&& in, const C& send_counts, const D& send_displacements, Out&& out,
                        const E& receive_counts, const F& receive_displacements,
                        CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return all_to_all_v(both.in, detail::layout_of(send_counts, send_displacements), both.out,
                            detail::layout_of(receive_counts, receive_displacements), options);
    }
    template <detail::AnyRange In, detail::Integers C = detail::Counts>
    Work<Gathered<detail::ElementOf<In>>> all_to_all_v(In&& in, const C& send_counts,
                                                       CollectiveOptions options = {}) const {
        return start_counted<detail::KeptChunks<detail::ElementOf<In>>>(
            std::forward<In>(in), {.operation = detail::Collective::all_to_all,
                                   .chunks = detail::layout_of(send_counts),
                                   .options = options});
    }
    using BufferCollectives::all_to_all_v;

protected:
    using Collectives::Collectives;

private:
    template <class Kept, class In>
    auto start_counted(In&& in, detail::CollectiveCall call) const {
        using T = typename decltype(Kept::take(std::declval<detail::Task&>()))::value_type;
        if constexpr (detail::check_input<In>() && detail::check_room<detail::ElementOf<In>>()) {
            call.input = const_buffer(std::forward<In>(in));
            return Work<T>(detail::start_counted(body(), std::move(call), std::make_unique<Kept>()),
                           &Kept::take);
        } else {
            return Work<T>{};
        }
    }
};

}  // namespace nexar

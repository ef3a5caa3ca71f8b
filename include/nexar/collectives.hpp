#pragma once

#include <cstddef>
#include <memory>
#include <nexar/buffer_collectives.hpp>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace nexar {

namespace detail {

/// Types of the argument `{}` on a rank that has no output, or no input.
template <class In>
using NoOutput = std::span<ElementOf<In>>;
template <class Out>
using NoInput = std::span<const ElementOf<Out>>;

struct InAndOut {
    ConstBuffer in{};
    Buffer out{};
};

/// `In` and `Out` are the types of forwarded arguments.
template <class In, class Out>
InAndOut in_and_out(In&& in, Out&& out) {
    if constexpr (check_both<In, Out>()) {
        return {const_buffer(std::forward<In>(in)), buffer(std::forward<Out>(out))};
    } else {
        return {};
    }
}

/// The operator for elements of T. The caller has already rejected arguments that are not
/// operators.
template <class T, class Op>
Operator operator_of(const Op& op) {
    if constexpr (Element<T>) {
        return Operator::of<T>(op);
    } else {
        return {};
    }
}

template <Buckets R>
std::vector<Buffer> bucket_list(R&& buckets) {
    // The elements of a temporary list outlive it only if the list holds views.
    using Reference = std::ranges::range_reference_t<R>;
    using Bucket = std::conditional_t<Dangling<R>, std::remove_reference_t<Reference>, Reference>;
    std::vector<Buffer> list;
    if constexpr (std::ranges::sized_range<R>) list.reserve(std::ranges::size(buckets));
    for (auto&& bucket : buckets) list.push_back(buffer<Bucket>(static_cast<Bucket&&>(bucket)));
    return list;
}

}  // namespace detail

/// The collectives of a communicator. Every rank must call the same ones in the same order; threads
/// that share a communicator must take turns. Any number of them may be in flight.
///
/// A collective starts at once. Its Work completes when this rank has done its part and its memory
/// is free again, which says nothing about other ranks (except for a barrier). If the calls differ
/// between ranks, they fail on all ranks with an error that describes both. If a rank cancels or
/// times out, the operation fails on every rank that has not completed it; then outputs are
/// undefined, inputs are unchanged, and the next operation is not affected. If a rank fails, leaves
/// or cannot reach another one, all later collectives of the communicator fail too: make a new one,
/// see Communicator::shrink().
///
/// A call takes contiguous ranges (vector, array, span), which must outlive its Work, or a single
/// value, which the operation copies; in that case the Work returns the result. Input and output
/// may be the same memory if the result exactly replaces the input (in place), and must not overlap
/// in any other way. ChunkCollectives has the v-variants, for chunks of different sizes.
class NEXAR_EXPORT Collectives : public BufferCollectives {
public:
    /// Every rank gets the reduction of all vectors, in place or in `out`.
    template <detail::AnyRange R, detail::AnyValue Op>
    Work<> all_reduce(R&& elements, const Op& op, CollectiveOptions options = {}) const {
        return all_reduce(buffer(std::forward<R>(elements)),
                          detail::operator_of<detail::ElementOf<R>>(op), options);
    }
    template <detail::AnyRange In, detail::AnyRange Out, detail::AnyValue Op>
    Work<> all_reduce(In&& in, Out&& out, const Op& op, CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return all_reduce(both.in, both.out, detail::operator_of<detail::ElementOf<Out>>(op),
                          options);
    }
    template <detail::AnyValue T, detail::AnyValue Op>
    Work<T> all_reduce(const T& value, const Op& op, CollectiveOptions options = {}) const {
        return fold_value(detail::Collective::all_reduce, value, op, options);
    }
    /// Reduces one vector that is spread over many places, such as the gradients of all layers.
    /// Runs in place and does not pack the parts into one buffer.
    template <detail::Buckets R, detail::AnyValue Op>
    Work<> all_reduce(R&& buckets, const Op& op, CollectiveOptions options = {}) const {
        using T = detail::ElementOf<detail::ElementOf<R>>;
        return all_reduce_buckets(detail::bucket_list(std::forward<R>(buckets)),
                                  detail::operator_of<T>(op), options);
    }
    using BufferCollectives::all_reduce;

    /// The root gets the reduction of all vectors; other ranks do not use `out` and may pass {}.
    template <detail::AnyRange In, detail::AnyRange Out = detail::NoOutput<In>,
              detail::AnyValue Op = Builtin>
    Work<> reduce(In&& in, Out&& out, const Op& op, int root,
                  CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return reduce(both.in, both.out, detail::operator_of<detail::ElementOf<Out>>(op), root,
                      options);
    }
    /// Returns nullopt on ranks other than the root.
    template <detail::AnyValue T, detail::AnyValue Op>
    Work<std::optional<T>> reduce(const T& value, const Op& op, int root,
                                  CollectiveOptions options = {}) const {
        if constexpr (detail::check_value<T>()) {
            using Kept = detail::KeptAtRoot<T>;
            auto kept = std::make_unique<Kept>(value, this_rank() == root);
            const Buffer place = kept->buffer();
            return start<Kept>({.operation = detail::Collective::reduce,
                                .input = place,
                                .output = place,
                                .op = detail::operator_of<T>(op),
                                .root = root,
                                .options = options},
                               std::move(kept));
        } else {
            return {};
        }
    }
    using BufferCollectives::reduce;

    /// Every rank gets the reduction of the vectors of all ranks up to and including itself.
    template <detail::AnyRange In, detail::AnyRange Out, detail::AnyValue Op>
    Work<> scan(In&& in, Out&& out, const Op& op, CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return scan(both.in, both.out, detail::operator_of<detail::ElementOf<Out>>(op), options);
    }
    template <detail::AnyValue T, detail::AnyValue Op>
    Work<T> scan(const T& value, const Op& op, CollectiveOptions options = {}) const {
        return fold_value(detail::Collective::scan, value, op, options);
    }
    using BufferCollectives::scan;

    /// Every rank gets the reduction of the vectors of all lower ranks; on rank 0 `out` is
    /// undefined.
    template <detail::AnyRange In, detail::AnyRange Out, detail::AnyValue Op>
    Work<> exclusive_scan(In&& in, Out&& out, const Op& op, CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return exclusive_scan(both.in, both.out, detail::operator_of<detail::ElementOf<Out>>(op),
                              options);
    }
    /// Rank 0 gets the identity of the operator: 0 for a sum, the largest number for a minimum.
    template <detail::AnyValue T, detail::AnyValue Op>
    Work<T> exclusive_scan(const T& value, const Op& op, CollectiveOptions options = {}) const {
        static_assert(std::is_same_v<Op, Builtin>,
                      "nexar: the identity of your own operator is not known; pass the initial "
                      "value that rank 0 gets as the third argument");
        if constexpr (detail::check_value<T>() && detail::check_operator<T, Builtin>()) {
            T identity = value;
            detail::put_identity(detail::buffer_at(&identity, 1), op.op);
            return scan_from(value, identity, op, options);
        } else {
            return {};
        }
    }
    /// The reduction starts with `initial`, as in std::exclusive_scan: rank 0 gets `initial`, and
    /// rank 2 gets `initial op value 0 op value 1`. Only the `initial` of rank 0 is used.
    template <detail::AnyValue T, detail::AnyValue Op>
    Work<T> exclusive_scan(const T& value, const Op& op, const std::type_identity_t<T>& initial,
                           CollectiveOptions options = {}) const {
        if constexpr (detail::check_value<T>()) {
            T first = value;
            const Operator any = detail::operator_of<T>(op);
            if (this_rank() == 0) {
                detail::fold_into(detail::buffer_at(&first, 1),
                                  detail::const_buffer_at(&initial, 1), any);
            }
            return scan_from(first, initial, any, options);
        } else {
            return {};
        }
    }
    using BufferCollectives::exclusive_scan;

    /// Every rank gets its chunk of the reduction of all vectors: `in` has size() times as many
    /// elements as `out`. In place, the result replaces this rank's chunk of the input.
    template <detail::AnyRange In, detail::AnyRange Out, detail::AnyValue Op>
    Work<> reduce_scatter(In&& in, Out&& out, const Op& op, CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return reduce_scatter(both.in, both.out, detail::operator_of<detail::ElementOf<Out>>(op),
                              options);
    }
    using BufferCollectives::reduce_scatter;

    /// Every rank gets the elements of the root.
    template <detail::AnyRange R>
    Work<> broadcast(R&& elements, int root, CollectiveOptions options = {}) const {
        return broadcast(buffer(std::forward<R>(elements)), root, options);
    }
    template <detail::AnyValue T>
    Work<T> broadcast(const T& value, int root, CollectiveOptions options = {}) const {
        if constexpr (detail::check_value<T>()) {
            using Kept = detail::Kept<T>;
            auto kept = std::make_unique<Kept>(value);
            const Buffer place = kept->buffer();
            return start<Kept>({.operation = detail::Collective::broadcast,
                                .output = place,
                                .root = root,
                                .options = options},
                               std::move(kept));
        } else {
            return {};
        }
    }
    using BufferCollectives::broadcast;

    /// Every rank gets the chunks of all ranks, in rank order: `out` has size() times as many
    /// elements as `in`.
    template <detail::AnyRange In, detail::AnyRange Out>
    Work<> all_gather(In&& in, Out&& out, CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return all_gather(both.in, both.out, options);
    }
    template <detail::AnyValue T>
    Work<std::vector<T>> all_gather(const T& value, CollectiveOptions options = {}) const {
        return gather_value(detail::Collective::all_gather, value, this_rank(), options);
    }
    using BufferCollectives::all_gather;

    /// The root gets the chunks of all ranks, in rank order; other ranks do not use `out` and may
    /// pass {}.
    template <detail::AnyRange In, detail::AnyRange Out = detail::NoOutput<In>>
    Work<> gather(In&& in, Out&& out, int root, CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return gather(both.in, both.out, root, options);
    }
    /// Returns an empty vector on ranks other than the root.
    template <detail::AnyValue T>
    Work<std::vector<T>> gather(const T& value, int root, CollectiveOptions options = {}) const {
        return gather_value(detail::Collective::gather, value, root, options);
    }
    using BufferCollectives::gather;

    /// Every rank gets its chunk of the root's elements; other ranks do not use `in` and may pass
    /// {}.
    template <detail::AnyRange Out, detail::AnyRange In = detail::NoInput<Out>>
    Work<> scatter(In&& in, Out&& out, int root, CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return scatter(both.in, both.out, root, options);
    }
    using BufferCollectives::scatter;

    /// Chunk i of `in` goes to rank i, chunk j of `out` comes from rank j.
    template <detail::AnyRange In, detail::AnyRange Out>
    Work<> all_to_all(In&& in, Out&& out, CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return all_to_all(both.in, both.out, options);
    }
    using BufferCollectives::all_to_all;

protected:
    using BufferCollectives::BufferCollectives;

    int this_rank() const noexcept;
    int world_size() const noexcept;

    /// `Kept` owns the buffers of the call and returns the value.
    template <class Kept>
    auto start(const detail::CollectiveCall& call, std::unique_ptr<Kept> kept) const {
        using T = typename decltype(Kept::take(std::declval<detail::Task&>()))::value_type;
        return Work<T>(detail::start_collective(body(), call, std::move(kept)), &Kept::take);
    }

private:
    template <class T, class Op>
    Work<T> fold_value(detail::Collective operation, const T& value, const Op& op,
                       CollectiveOptions options) const {
        if constexpr (detail::check_value<T>()) {
            using Kept = detail::Kept<T>;
            auto kept = std::make_unique<Kept>(value);
            const Buffer place = kept->buffer();
            return start<Kept>({.operation = operation,
                                .input = place,
                                .output = place,
                                .op = detail::operator_of<T>(op),
                                .options = options},
                               std::move(kept));
        } else {
            return {};
        }
    }

    /// Rank 0 gets `first`; every other rank gets the reduction of `value` over all lower ranks.
    template <class T>
    Work<T> scan_from(const T& value, const T& first, const Operator& op,
                      CollectiveOptions options) const {
        using Kept = detail::KeptPrefix<T>;
        auto kept = std::make_unique<Kept>(value, first, this_rank() == 0);
        const Buffer place = kept->buffer();
        return start<Kept>({.operation = detail::Collective::exclusive_scan,
                            .input = place,
                            .output = place,
                            .op = op,
                            .options = options},
                           std::move(kept));
    }

    template <class T>
    Work<std::vector<T>> gather_value(detail::Collective operation, const T& value, int root,
                                      CollectiveOptions options) const {
        if constexpr (detail::check_value<T>()) {
            using Kept = detail::KeptOfAll<T>;
            auto kept =
                std::make_unique<Kept>(value, this_rank(), world_size(), this_rank() == root);
            const ConstBuffer own = kept->own();
            const Buffer all = kept->all();
            return start<Kept>({.operation = operation,
                                .input = own,
                                .output = all,
                                .root = root,
                                .options = options},
                               std::move(kept));
        } else {
            return {};
        }
    }
};

}  // namespace nexar

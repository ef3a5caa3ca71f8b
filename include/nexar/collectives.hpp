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

/// Stand for `{}` where a rank has no output, or no input.
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

/// For elements of T; one that is none was refused before.
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
    // In a list that is a temporary only the elements of views live on.
    using Reference = std::ranges::range_reference_t<R>;
    using Bucket = std::conditional_t<Dangling<R>, std::remove_reference_t<Reference>, Reference>;
    std::vector<Buffer> list;
    if constexpr (std::ranges::sized_range<R>) list.reserve(std::ranges::size(buckets));
    for (auto&& bucket : buckets) list.push_back(buffer<Bucket>(static_cast<Bucket&&>(bucket)));
    return list;
}

}  // namespace detail

/// The collectives of a communicator: every rank calls the same ones in the same order, threads
/// that share a communicator one after the other. Any number may be in flight.
///
/// Each starts at once; its Work ends when this rank's part is done and its memory is free, which
/// says nothing about other ranks (except for a barrier). Calls that differ between ranks fail on
/// all of them with both descriptions. When one rank cancels, runs out of time or is lost while it
/// is needed, every rank that is still in the operation fails; outputs are undefined then, inputs
/// are as they were, and the next operation is not affected.
///
/// A call takes contiguous ranges (vector, array, span), which must outlive its Work, or a single
/// value, which the operation copies; then the Work gives the result. An input and an output may be
/// the same memory exactly where the result replaces the input (in place), and must not overlap in
/// any other way. ChunkCollectives has the v-variants, for chunks of different sizes.
class NEXAR_EXPORT Collectives : public BufferCollectives {
public:
    /// Every rank gets the fold of all vectors, in place or in `out`.
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
    /// One vector that lies in many places, such as the gradients of layers. In place; nothing is
    /// packed together.
    template <detail::Buckets R, detail::AnyValue Op>
    Work<> all_reduce(R&& buckets, const Op& op, CollectiveOptions options = {}) const {
        using T = detail::ElementOf<detail::ElementOf<R>>;
        return all_reduce_buckets(detail::bucket_list(std::forward<R>(buckets)),
                                  detail::operator_of<T>(op), options);
    }
    using BufferCollectives::all_reduce;

    /// The root gets the fold of all vectors; elsewhere `out` is not used and may be {}.
    template <detail::AnyRange In, detail::AnyRange Out = detail::NoOutput<In>,
              detail::AnyValue Op = Builtin>
    Work<> reduce(In&& in, Out&& out, const Op& op, int root,
                  CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return reduce(both.in, both.out, detail::operator_of<detail::ElementOf<Out>>(op), root,
                      options);
    }
    /// Nullopt except at the root.
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

    /// Every rank gets the fold of the vectors of the ranks up to and including its own.
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

    /// Every rank gets the fold of the ranks before its own; what rank 0 finds in `out` is
    /// undefined.
    template <detail::AnyRange In, detail::AnyRange Out, detail::AnyValue Op>
    Work<> exclusive_scan(In&& in, Out&& out, const Op& op, CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return exclusive_scan(both.in, both.out, detail::operator_of<detail::ElementOf<Out>>(op),
                              options);
    }
    /// Rank 0 gets the identity of the operator: 0 of a sum, the largest number of a minimum.
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
    /// The fold begins with `initial`, as that of std::exclusive_scan: rank 0 gets `initial`, and
    /// rank 2 `initial op value 0 op value 1`. Only rank 0's `initial` counts.
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

    /// Every rank gets its chunk of the fold of all vectors: `in` has size() times as many elements
    /// as `out`. In place the result replaces the chunk.
    template <detail::AnyRange In, detail::AnyRange Out, detail::AnyValue Op>
    Work<> reduce_scatter(In&& in, Out&& out, const Op& op, CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return reduce_scatter(both.in, both.out, detail::operator_of<detail::ElementOf<Out>>(op),
                              options);
    }
    using BufferCollectives::reduce_scatter;

    /// Every rank gets what the root has.
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

    /// Every rank gets the chunks of all, in the order of ranks: `out` has size() times as many
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

    /// The root gets the chunks of all, in the order of ranks; elsewhere `out` is not used and may
    /// be {}.
    template <detail::AnyRange In, detail::AnyRange Out = detail::NoOutput<In>>
    Work<> gather(In&& in, Out&& out, int root, CollectiveOptions options = {}) const {
        const auto both = detail::in_and_out(std::forward<In>(in), std::forward<Out>(out));
        return gather(both.in, both.out, root, options);
    }
    /// Empty except at the root.
    template <detail::AnyValue T>
    Work<std::vector<T>> gather(const T& value, int root, CollectiveOptions options = {}) const {
        return gather_value(detail::Collective::gather, value, root, options);
    }
    using BufferCollectives::gather;

    /// Every rank gets its chunk of what the root has; elsewhere `in` is not used and may be {}.
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

    /// `Kept` owns the buffers of the call and gives the value.
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

    /// Rank 0 gets `first`; the others get the fold of `value` over the ranks before them.
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

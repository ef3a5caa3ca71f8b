#pragma once

#include <cstddef>
#include <memory>
#include <nexar/collective_call.hpp>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace nexar {

namespace detail {
template <class T>
concept Writable = Element<T> && !std::is_const_v<T>;
}

/// Chunks of ranks, one after the other, and how many elements each has.
template <class T>
struct Gathered {
    std::vector<T> elements{};
    std::vector<std::size_t> counts{};
};

/// The collectives of a communicator: every rank calls the same ones in the same order, threads
/// that share a communicator one after the other. Any number may be under way.
///
/// Each starts at once; its Work ends when this rank's part is done and its memory is free, which
/// says nothing about other ranks (but for a barrier). Calls that differ between ranks fail on all
/// of them with both descriptions. When one rank cancels, or its time is over, or a member is lost
/// that is needed, every rank that is still in the operation fails; what was written by then is
/// undefined, inputs are as they were, and the next operation is not concerned.
///
/// Two buffers may be the same exactly where the result replaces the input (in place), and must not
/// overlap in any other way. `counts` of the v-variants are elements per rank.
class NEXAR_EXPORT Collectives {
public:
    /// Ends when every rank has called it.
    Work<> barrier(CollectiveOptions options = {}) const {
        return start({.operation = schedule::Operation::barrier, .options = options});
    }

    /// Every rank gets the fold of all vectors. In place: `elements` is input and output.
    template <detail::Writable T, std::size_t N, class Op>
    Work<> all_reduce(std::span<T, N> elements, const Op& op,
                      CollectiveOptions options = {}) const {
        return all_reduce(buffer(elements), detail::any_operator<T>(op), options);
    }
    template <Element T, std::size_t N, detail::Writable U, std::size_t M, class Op>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> all_reduce(std::span<T, N> in, std::span<U, M> out, const Op& op,
                      CollectiveOptions options = {}) const {
        return all_reduce(const_buffer(in), buffer(out), detail::any_operator<U>(op), options);
    }
    Work<> all_reduce(const Buffer& elements, detail::AnyOperator op,
                      CollectiveOptions options = {}) const {
        return all_reduce(elements, elements, std::move(op), options);
    }
    Work<> all_reduce(const ConstBuffer& in, const Buffer& out, detail::AnyOperator op,
                      CollectiveOptions options = {}) const {
        return folding(schedule::Operation::all_reduce, in, out, std::move(op), options);
    }
    /// One vector that stands in many places, one after the other: gradients of layers. In place;
    /// nothing is packed together.
    template <detail::Writable T, std::size_t N, class Op>
    Work<> all_reduce(std::span<const std::span<T>, N> buckets, const Op& op,
                      CollectiveOptions options = {}) const {
        std::vector<Buffer> list;
        list.reserve(buckets.size());
        for (const std::span<T> bucket : buckets) list.push_back(buffer(bucket));
        return all_reduce_buckets(std::move(list), detail::any_operator<T>(op), options);
    }
    Work<> all_reduce_buckets(std::vector<Buffer> buckets, detail::AnyOperator op,
                              CollectiveOptions options = {}) const {
        return start({.operation = schedule::Operation::all_reduce,
                      .buckets = std::move(buckets),
                      .op = std::move(op),
                      .options = options});
    }

    /// The root gets the fold of all vectors; elsewhere `out` is not looked at.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M, class Op>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> reduce(std::span<T, N> in, std::span<U, M> out, const Op& op, int root,
                  CollectiveOptions options = {}) const {
        return reduce(const_buffer(in), buffer(out), detail::any_operator<U>(op), root, options);
    }
    Work<> reduce(const ConstBuffer& in, const Buffer& out, detail::AnyOperator op, int root,
                  CollectiveOptions options = {}) const {
        return start({.operation = schedule::Operation::reduce,
                      .input = in,
                      .output = out,
                      .op = std::move(op),
                      .root = root,
                      .options = options});
    }

    /// Every rank gets the fold of the vectors of the ranks up to its own.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M, class Op>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> scan(std::span<T, N> in, std::span<U, M> out, const Op& op,
                CollectiveOptions options = {}) const {
        return scan(const_buffer(in), buffer(out), detail::any_operator<U>(op), options);
    }
    Work<> scan(const ConstBuffer& in, const Buffer& out, detail::AnyOperator op,
                CollectiveOptions options = {}) const {
        return folding(schedule::Operation::scan, in, out, std::move(op), options);
    }
    /// The same of the ranks before its own; at rank 0 what is in `out` afterwards is undefined.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M, class Op>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> exclusive_scan(std::span<T, N> in, std::span<U, M> out, const Op& op,
                          CollectiveOptions options = {}) const {
        return exclusive_scan(const_buffer(in), buffer(out), detail::any_operator<U>(op), options);
    }
    Work<> exclusive_scan(const ConstBuffer& in, const Buffer& out, detail::AnyOperator op,
                          CollectiveOptions options = {}) const {
        return folding(schedule::Operation::exclusive_scan, in, out, std::move(op), options);
    }

    /// Every rank gets its chunk of the fold of all vectors: `in` has size() times as many elements
    /// as `out`. In place the result stands where the chunk stood.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M, class Op>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> reduce_scatter(std::span<T, N> in, std::span<U, M> out, const Op& op,
                          CollectiveOptions options = {}) const {
        return reduce_scatter(const_buffer(in), buffer(out), detail::any_operator<U>(op), options);
    }
    Work<> reduce_scatter(const ConstBuffer& in, const Buffer& out, detail::AnyOperator op,
                          CollectiveOptions options = {}) const {
        return folding(schedule::Operation::reduce_scatter, in, out, std::move(op), options);
    }
    /// The same with chunks of different sizes; every rank knows all `counts`.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M, class Op>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> reduce_scatter_v(std::span<T, N> in, std::span<U, M> out,
                            std::span<const std::size_t> counts, const Op& op,
                            CollectiveOptions options = {}) const {
        return reduce_scatter_v(const_buffer(in), buffer(out), counts, detail::any_operator<U>(op),
                                options);
    }
    Work<> reduce_scatter_v(const ConstBuffer& in, const Buffer& out,
                            std::span<const std::size_t> counts, detail::AnyOperator op,
                            CollectiveOptions options = {}) const {
        auto chunks = list(counts);
        return start({.operation = schedule::Operation::reduce_scatter,
                      .input = in,
                      .output = out,
                      .op = std::move(op),
                      .counts = std::move(chunks),
                      .options = options});
    }

    /// Every rank gets what the root has.
    template <detail::Writable T, std::size_t N>
    Work<> broadcast(std::span<T, N> elements, int root, CollectiveOptions options = {}) const {
        return broadcast(buffer(elements), root, options);
    }
    Work<> broadcast(const Buffer& elements, int root, CollectiveOptions options = {}) const {
        return start({.operation = schedule::Operation::broadcast,
                      .output = elements,
                      .root = root,
                      .options = options});
    }

    /// Every rank gets the chunks of all, in the order of ranks: `out` has size() times as many
    /// elements as `in`.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> all_gather(std::span<T, N> in, std::span<U, M> out,
                      CollectiveOptions options = {}) const {
        return all_gather(const_buffer(in), buffer(out), options);
    }
    Work<> all_gather(const ConstBuffer& in, const Buffer& out,
                      CollectiveOptions options = {}) const {
        return moving(schedule::Operation::all_gather, in, out, options);
    }
    /// The same with chunks of different sizes; every rank knows all `counts`.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> all_gather_v(std::span<T, N> in, std::span<U, M> out,
                        std::span<const std::size_t> counts, CollectiveOptions options = {}) const {
        return all_gather_v(const_buffer(in), buffer(out), counts, options);
    }
    Work<> all_gather_v(const ConstBuffer& in, const Buffer& out,
                        std::span<const std::size_t> counts, CollectiveOptions options = {}) const {
        auto chunks = list(counts);
        return start({.operation = schedule::Operation::all_gather,
                      .input = in,
                      .output = out,
                      .counts = std::move(chunks),
                      .options = options});
    }

    /// The root gets the chunks of all, in the order of ranks; elsewhere `out` is not looked at.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> gather(std::span<T, N> in, std::span<U, M> out, int root,
                  CollectiveOptions options = {}) const {
        return gather(const_buffer(in), buffer(out), root, options);
    }
    Work<> gather(const ConstBuffer& in, const Buffer& out, int root,
                  CollectiveOptions options = {}) const {
        return moving(schedule::Operation::gather, in, out, options, root);
    }
    /// The same with chunks of different sizes; only the root looks at `counts`.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> gather_v(std::span<T, N> in, std::span<U, M> out, std::span<const std::size_t> counts,
                    int root, CollectiveOptions options = {}) const {
        return gather_v(const_buffer(in), buffer(out), counts, root, options);
    }
    Work<> gather_v(const ConstBuffer& in, const Buffer& out, std::span<const std::size_t> counts,
                    int root, CollectiveOptions options = {}) const {
        auto chunks = list(counts);
        return start({.operation = schedule::Operation::gather,
                      .input = in,
                      .output = out,
                      .root = root,
                      .counts = std::move(chunks),
                      .options = options});
    }

    /// Every rank gets its chunk of what the root has; elsewhere `in` is not looked at.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> scatter(std::span<T, N> in, std::span<U, M> out, int root,
                   CollectiveOptions options = {}) const {
        return scatter(const_buffer(in), buffer(out), root, options);
    }
    Work<> scatter(const ConstBuffer& in, const Buffer& out, int root,
                   CollectiveOptions options = {}) const {
        return moving(schedule::Operation::scatter, in, out, options, root);
    }
    /// The same with chunks of different sizes; only the root looks at `counts`.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> scatter_v(std::span<T, N> in, std::span<U, M> out, std::span<const std::size_t> counts,
                     int root, CollectiveOptions options = {}) const {
        return scatter_v(const_buffer(in), buffer(out), counts, root, options);
    }
    Work<> scatter_v(const ConstBuffer& in, const Buffer& out, std::span<const std::size_t> counts,
                     int root, CollectiveOptions options = {}) const {
        auto chunks = list(counts);
        return start({.operation = schedule::Operation::scatter,
                      .input = in,
                      .output = out,
                      .root = root,
                      .counts = std::move(chunks),
                      .options = options});
    }

    /// Chunk i of `in` goes to rank i, chunk j of `out` comes from rank j.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> all_to_all(std::span<T, N> in, std::span<U, M> out,
                      CollectiveOptions options = {}) const {
        return all_to_all(const_buffer(in), buffer(out), options);
    }
    Work<> all_to_all(const ConstBuffer& in, const Buffer& out,
                      CollectiveOptions options = {}) const {
        return moving(schedule::Operation::all_to_all, in, out, options);
    }
    /// The same with chunks of different sizes: what rank i sends to j is what j receives from i.
    template <Element T, std::size_t N, detail::Writable U, std::size_t M>
        requires std::same_as<std::remove_cv_t<T>, U>
    Work<> all_to_all_v(std::span<T, N> in, std::span<const std::size_t> send_counts,
                        std::span<U, M> out, std::span<const std::size_t> receive_counts,
                        CollectiveOptions options = {}) const {
        return all_to_all_v(const_buffer(in), send_counts, buffer(out), receive_counts, options);
    }
    Work<> all_to_all_v(const ConstBuffer& in, std::span<const std::size_t> send_counts,
                        const Buffer& out, std::span<const std::size_t> receive_counts,
                        CollectiveOptions options = {}) const {
        auto sends = list(send_counts);
        auto receives = list(receive_counts);
        return start({.operation = schedule::Operation::all_to_all,
                      .input = in,
                      .output = out,
                      .counts = std::move(sends),
                      .receive_counts = std::move(receives),
                      .options = options});
    }

    // The v-variants where a rank knows only its own counts: the counts are exchanged first. These
    // wait.

    template <Element T, std::size_t N>
    Gathered<std::remove_cv_t<T>> all_gather_v(std::span<T, N> in) const {
        auto all = room_for<std::remove_cv_t<T>>(counts_of_all(in.size(), kNobody));
        all_gather_v(in, std::span(all.elements), all.counts).wait();
        return all;
    }
    /// Empty but at the root.
    template <Element T, std::size_t N>
    Gathered<std::remove_cv_t<T>> gather_v(std::span<T, N> in, int root) const {
        auto all = room_for<std::remove_cv_t<T>>(counts_of_all(in.size(), root));
        gather_v(in, std::span(all.elements), all.counts, root).wait();
        return all;
    }
    /// The own chunk; only the root looks at `in` and `counts`.
    template <Element T, std::size_t N>
    std::vector<std::remove_cv_t<T>> scatter_v(std::span<T, N> in,
                                               std::span<const std::size_t> counts,
                                               int root) const {
        std::vector<std::remove_cv_t<T>> own(count_from(counts, root));
        scatter_v(in, std::span(own), counts, root).wait();
        return own;
    }
    template <Element T, std::size_t N>
    Gathered<std::remove_cv_t<T>> all_to_all_v(std::span<T, N> in,
                                               std::span<const std::size_t> send_counts) const {
        auto all = room_for<std::remove_cv_t<T>>(counts_to_all(send_counts));
        all_to_all_v(in, send_counts, std::span(all.elements), all.counts).wait();
        return all;
    }

protected:
    explicit Collectives(std::shared_ptr<detail::CommunicatorBody> body) noexcept
        : body_(std::move(body)) {}

    const std::shared_ptr<detail::CommunicatorBody>& body() const noexcept { return body_; }

private:
    // Made before a call is put together: nothing throws while that has members without a value.
    static std::vector<std::size_t> list(std::span<const std::size_t> counts) {
        return {counts.begin(), counts.end()};
    }
    static constexpr int kNobody = -1;

    template <class T>
    static Gathered<T> room_for(std::vector<std::size_t> counts) {
        const auto total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
        return {.elements = std::vector<T>(total), .counts = std::move(counts)};
    }
    /// What each rank has, at `root` or, when that is nobody, everywhere.
    std::vector<std::size_t> counts_of_all(std::size_t own, int root) const;
    /// What the root has for this rank.
    std::size_t count_from(std::span<const std::size_t> counts, int root) const;
    /// What each rank has for this one.
    std::vector<std::size_t> counts_to_all(std::span<const std::size_t> counts) const;

    Work<> start(const detail::CollectiveCall& call) const {
        return Work<>(detail::start_collective(body_, call));
    }
    Work<> folding(schedule::Operation operation, const ConstBuffer& in, const Buffer& out,
                   detail::AnyOperator op, CollectiveOptions options) const {
        return start({.operation = operation,
                      .input = in,
                      .output = out,
                      .op = std::move(op),
                      .options = options});
    }
    Work<> moving(schedule::Operation operation, const ConstBuffer& in, const Buffer& out,
                  CollectiveOptions options, int root = 0) const {
        return start(
            {.operation = operation, .input = in, .output = out, .root = root, .options = options});
    }

    std::shared_ptr<detail::CommunicatorBody> body_;
};

}  // namespace nexar

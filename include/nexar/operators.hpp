#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <nexar/dtype.hpp>
#include <type_traits>
#include <utility>

namespace nexar {

/// An operator that nexar knows: `nexar::sum`.
struct Builtin {
    ReduceOp op = ReduceOp::sum;
};

inline constexpr Builtin sum{ReduceOp::sum};
inline constexpr Builtin product{ReduceOp::product};
inline constexpr Builtin min{ReduceOp::min};
inline constexpr Builtin max{ReduceOp::max};
inline constexpr Builtin average{ReduceOp::average};
inline constexpr Builtin bit_and{ReduceOp::bit_and};
inline constexpr Builtin bit_or{ReduceOp::bit_or};
inline constexpr Builtin bit_xor{ReduceOp::bit_xor};
inline constexpr Builtin logical_and{ReduceOp::logical_and};
inline constexpr Builtin logical_or{ReduceOp::logical_or};
inline constexpr Builtin logical_xor{ReduceOp::logical_xor};
inline constexpr Builtin min_location{ReduceOp::min_location};
inline constexpr Builtin max_location{ReduceOp::max_location};

/// Whether a op b and b op a are the same. An operator that does not commute is folded in the order
/// of ranks, by fewer algorithms.
enum class Commutes : std::uint8_t { no, yes };

/// An operator of the user's, see custom().
template <class F>
struct Custom {
    F function;
    Commutes commutes = Commutes::no;
};

/// Makes an operator of a callable (T, T) -> T. It is called as f(a, b) with a from the lower
/// rank's side; must be associative, must not throw, and may be called on any thread, many times at
/// once. It must not call nexar: that is Errc::reentrant_call. A callable that is given without
/// custom() counts as one that does not commute.
template <class F>
Custom<F> custom(F function, Commutes commutes) {
    return {std::move(function), commutes};
}

namespace detail {

/// How an operator that nexar does not know folds a range.
class UserFold {
public:
    UserFold() = default;
    UserFold(const UserFold&) = delete;
    UserFold& operator=(const UserFold&) = delete;
    virtual ~UserFold() = default;

    /// out = a op b, elementwise, at any alignment; `out` is exactly one of them or apart from
    /// both. One call per fold, none per element.
    virtual void fold(std::byte* out, const std::byte* a, const std::byte* b,
                      std::size_t count) const = 0;
};

/// The loop of one (T, F) pair, compiled where the operator is seen, so that it is inlined and
/// vectorised as far as the user's compiler flags allow.
template <class T, class F>
class TypedFold final : public UserFold {
public:
    explicit TypedFold(F op) : op_(std::move(op)) {}

    void fold(std::byte* out, const std::byte* a, const std::byte* b,
              std::size_t count) const override {
        // Iterations are independent: `out` is an operand or apart from both, which the compiler
        // cannot know. memcpy makes any alignment valid and costs nothing. Clang warns where it was
        // asked for vectors and made none, as without optimisation: that is no fault of the caller.
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
        for (std::size_t i = 0; i < count; ++i) {
            const T z = std::invoke(op_, loaded(a, i), loaded(b, i));
            std::memcpy(out + i * sizeof(T), &z, sizeof(T));
        }
#ifdef __clang__
#pragma clang diagnostic pop
#endif
    }

private:
    static T loaded(const std::byte* from, std::size_t i) noexcept {
        if constexpr (std::is_default_constructible_v<T>) {
            T x;
            std::memcpy(&x, from + i * sizeof(T), sizeof(T));
            return x;
        } else {
            std::array<std::byte, sizeof(T)> x;
            std::memcpy(x.data(), from + i * sizeof(T), sizeof(T));
            return std::bit_cast<T>(x);
        }
    }

    F op_;
};

template <class F, class T>
concept Folds = std::is_invocable_r_v<T, const F&, T, T>;

template <class Op>
inline constexpr bool is_custom = false;
template <class F>
inline constexpr bool is_custom<Custom<F>> = true;

template <class T, class Op>
consteval bool check_operator() {
    if constexpr (std::same_as<Op, Builtin>) {
        static_assert(Number<T>,
                      "nexar: nexar's own operators fold only numbers; pass a callable "
                      "(T, T) -> T to fold bool, std::byte and structs");
        return Number<T>;
    } else if constexpr (is_custom<Op>) {
        return check_operator<T, decltype(Op::function)>();
    } else {
        static_assert(Folds<Op, T>,
                      "nexar: an operator must be one of nexar's, such as nexar::sum, or a "
                      "callable (T, T) -> T");
        return Folds<Op, T>;
    }
}

}  // namespace detail

/// An operator for elements whose type is known only at run time, as the calls over Buffer take it:
/// one of nexar's, which fits every type of number, or one of the user's for one type.
class Operator {
public:
    Operator() noexcept = default;
    // Implicit on purpose: `world.all_reduce(buffer, nexar::sum)`.
    Operator(Builtin builtin) noexcept : builtin_(builtin.op) {}  // NOLINT(google-explicit-*)
    Operator(ReduceOp builtin) noexcept : builtin_(builtin) {}    // NOLINT(google-explicit-*)

    /// One of nexar's, a callable (T, T) -> T, or what custom() made of one.
    template <Element T, class Op>
    static Operator of(const Op& op) {
        if constexpr (!detail::check_operator<T, Op>()) {
            return {};
        } else if constexpr (std::same_as<Op, Builtin>) {
            return op;
        } else if constexpr (detail::is_custom<Op>) {
            return {
                std::make_shared<const detail::TypedFold<T, decltype(op.function)>>(op.function),
                dtype_of<T>, sizeof(T), op.commutes};
        } else {
            using F = std::decay_t<Op>;  // a function becomes a pointer to it
            return {std::make_shared<const detail::TypedFold<T, F>>(op), dtype_of<T>, sizeof(T),
                    Commutes::no};
        }
    }

    /// One of nexar's; not used when there is a fold().
    ReduceOp builtin() const noexcept { return builtin_; }
    /// Null for one of nexar's.
    const std::shared_ptr<const detail::UserFold>& fold() const noexcept { return fold_; }
    bool commutes() const noexcept { return commutes_ == Commutes::yes; }
    /// Whether it folds elements of this type, `size` bytes each.
    bool folds(DType dtype, std::size_t size) const noexcept {
        return fold_ == nullptr || (dtype == dtype_ && size == size_);
    }

private:
    Operator(std::shared_ptr<const detail::UserFold> fold, DType dtype, std::size_t size,
             Commutes commutes) noexcept
        : fold_(std::move(fold)), dtype_(dtype), size_(size), commutes_(commutes) {}

    ReduceOp builtin_ = ReduceOp::sum;
    std::shared_ptr<const detail::UserFold> fold_{};
    DType dtype_ = DType::opaque;
    std::size_t size_ = 0;
    Commutes commutes_ = Commutes::yes;
};

}  // namespace nexar

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

/// A built-in operator, such as `nexar::sum`.
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

/// Whether a op b equals b op a. An operator that does not commute is applied in rank order, and
/// fewer algorithms support it.
enum class Commutes : std::uint8_t { no, yes };

/// A user-defined operator, see custom().
template <class F>
struct Custom {
    F function;
    Commutes commutes = Commutes::no;
};

/// Makes an operator from a callable (T, T) -> T. nexar calls it as f(a, b), where a comes from the
/// lower ranks. It must be associative and must not throw, and any thread may call it, several at
/// once. It must not call nexar, which fails with Errc::reentrant_call. A callable passed without
/// custom() is treated as not commutative.
template <class F>
Custom<F> custom(F function, Commutes commutes) {
    return {std::move(function), commutes};
}

namespace detail {

/// Applies a user-defined operator to arrays.
class UserFold {
public:
    UserFold() = default;
    UserFold(const UserFold&) = delete;
    UserFold& operator=(const UserFold&) = delete;
    virtual ~UserFold() = default;

    /// out = a op b, elementwise, at any alignment. `out` is exactly one of the operands or
    /// overlaps neither. One virtual call per array, not per element.
    virtual void fold(std::byte* out, const std::byte* a, const std::byte* b,
                      std::size_t count) const = 0;
};

/// The loop for one (T, F) pair. It is compiled in the user's code, so that the compiler can inline
/// the operator and vectorise the loop as far as the user's flags allow.
template <class T, class F>
class TypedFold final : public UserFold {
public:
    explicit TypedFold(F op) : op_(std::move(op)) {}

    void fold(std::byte* out, const std::byte* a, const std::byte* b,
              std::size_t count) const override {
        // Iterations are independent: `out` is an operand or overlaps neither, which the compiler
        // cannot know. memcpy makes any alignment valid and costs nothing. Clang warns when it does
        // not vectorise the loop as requested, for instance without optimisation; the caller cannot
        // do anything about that.
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
                      "nexar: the built-in operators work only on numbers; pass a callable "
                      "(T, T) -> T to reduce bool, std::byte and structs");
        return Number<T>;
    } else if constexpr (is_custom<Op>) {
        return check_operator<T, decltype(Op::function)>();
    } else {
        static_assert(Folds<Op, T>,
                      "nexar: an operator must be a built-in one, such as nexar::sum, or a "
                      "callable (T, T) -> T");
        return Folds<Op, T>;
    }
}

}  // namespace detail

/// An operator for elements whose type is known only at run time, for the calls that take a Buffer:
/// a built-in operator, which works for every numeric type, or a user-defined one for a single
/// type.
class Operator {
public:
    Operator() noexcept = default;
    // Implicit on purpose: `world.all_reduce(buffer, nexar::sum)`.
    Operator(Builtin builtin) noexcept : builtin_(builtin.op) {}  // NOLINT(google-explicit-*)
    Operator(ReduceOp builtin) noexcept : builtin_(builtin) {}    // NOLINT(google-explicit-*)

    /// `op` is a built-in operator, a callable (T, T) -> T, or the result of custom().
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

    /// The built-in operator; meaningless if fold() is not null.
    ReduceOp builtin() const noexcept { return builtin_; }
    /// Null for a built-in operator.
    const std::shared_ptr<const detail::UserFold>& fold() const noexcept { return fold_; }
    bool commutes() const noexcept { return commutes_ == Commutes::yes; }
    /// Whether it can be applied to elements of this type, `size` bytes each.
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

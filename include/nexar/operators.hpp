#pragma once

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
inline constexpr Builtin product{ReduceOp::prod};
inline constexpr Builtin min{ReduceOp::min};
inline constexpr Builtin max{ReduceOp::max};
inline constexpr Builtin average{ReduceOp::avg};
inline constexpr Builtin bit_and{ReduceOp::bit_and};
inline constexpr Builtin bit_or{ReduceOp::bit_or};
inline constexpr Builtin bit_xor{ReduceOp::bit_xor};
inline constexpr Builtin logical_and{ReduceOp::logical_and};
inline constexpr Builtin logical_or{ReduceOp::logical_or};
inline constexpr Builtin logical_xor{ReduceOp::logical_xor};
inline constexpr Builtin min_location{ReduceOp::minloc};
inline constexpr Builtin max_location{ReduceOp::maxloc};

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
            T x;
            T y;
            std::memcpy(&x, a + i * sizeof(T), sizeof(T));
            std::memcpy(&y, b + i * sizeof(T), sizeof(T));
            const T z = std::invoke(op_, x, y);
            std::memcpy(out + i * sizeof(T), &z, sizeof(T));
        }
#ifdef __clang__
#pragma clang diagnostic pop
#endif
    }

private:
    F op_;
};

/// An operator without its type.
struct AnyOperator {
    ReduceOp op = ReduceOp::sum;  // when there is no `user`
    std::shared_ptr<const UserFold> user{};
    bool commutes = true;
};

template <class F, class T>
concept Folds = std::is_invocable_r_v<T, const F&, T, T>;

template <class Op>
inline constexpr bool is_custom = false;
template <class F>
inline constexpr bool is_custom<Custom<F>> = true;

template <Element T, class Op>
AnyOperator any_operator(const Op& op) {
    if constexpr (std::same_as<Op, Builtin>) {
        return {.op = op.op};
    } else if constexpr (is_custom<Op>) {
        auto any = any_operator<T>(op.function);
        any.commutes = op.commutes == Commutes::yes;
        return any;
    } else {
        static_assert(Folds<Op, T>, "an operator is a callable (T, T) -> T, or one of nexar's");
        using F = std::decay_t<Op>;
        return {.user = std::make_shared<const TypedFold<T, F>>(op), .commutes = false};
    }
}

}  // namespace detail

}  // namespace nexar

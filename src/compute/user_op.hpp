#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <nexar/dtype.hpp>
#include <type_traits>
#include <utility>

#include "compute/reduce.hpp"

namespace nexar::compute {

/// The loop of one (T, F) pair, compiled where the operator is seen, so that it is inlined and
/// vectorised as far as the user's compiler flags allow.
template <class T, class F>
class TypedFold final : public UserFold {
public:
    explicit TypedFold(F op) : op_(std::move(op)) {}

    void fold(std::byte* out, const std::byte* a, const std::byte* b,
              std::size_t count) const override {
        // Iterations are independent: `out` is an operand or apart from both, which the compiler
        // cannot know. memcpy makes any alignment valid and costs nothing.
#ifdef __clang__
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
    }

private:
    F op_;
};

/// A reducer for an operator of the user's, (T, T) -> T. It is called as op(a, b) with a from the
/// lower rank's side, so it need not be commutative; it must be associative, as every reduction
/// assumes, must not throw, and may be called from any thread. Copies of the reducer share it.
template <Element T, class F>
    requires std::same_as<T, std::remove_cv_t<T>> && std::is_invocable_r_v<T, const F&, T, T>
Reducer reducer_of(F op, bool commutative) {
    static_assert(std::is_trivially_copyable_v<T>);
    return {dtype_of<T>, std::make_shared<const TypedFold<T, F>>(std::move(op)), commutative};
}

}  // namespace nexar::compute

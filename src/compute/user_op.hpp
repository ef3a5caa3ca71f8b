#pragma once

#include <concepts>
#include <memory>
#include <nexar/operators.hpp>
#include <type_traits>
#include <utility>

#include "compute/reduce.hpp"

namespace nexar::compute {

/// A reducer for a user-defined operator (T, T) -> T. It calls op(a, b) with `a` from the side of
/// the lower rank, so the operator need not be commutative. It must be associative, must not throw,
/// and may be called from any thread. Copies of the reducer share it.
template <Element T, class F>
    requires std::same_as<T, std::remove_cv_t<T>> && std::is_invocable_r_v<T, const F&, T, T>
Reducer reducer_of(F op, bool commutative) {
    static_assert(std::is_trivially_copyable_v<T>);
    return {dtype_of<T>, sizeof(T), std::make_shared<const detail::TypedFold<T, F>>(std::move(op)),
            commutative};
}

}  // namespace nexar::compute

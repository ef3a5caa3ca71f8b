// Kernels for f32 and f64.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/float_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <limits>

#include "compute/kernel.hpp"
#include "compute/loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace nexar::compute::HWY_NAMESPACE {
namespace {

struct Sum {
    template <class D, class V>
    HWY_INLINE V operator()(D /*d*/, V a, V b) const {
        return hn::Add(a, b);
    }
};

struct Product {
    template <class D, class V>
    HWY_INLINE V operator()(D /*d*/, V a, V b) const {
        return hn::Mul(a, b);
    }
};

template <class D, class V>
HWY_INLINE V nan_if_either(D d, V a, V b, V otherwise) {
    const V nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
    return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), nan, otherwise);
}

// The min and max instructions of architectures treat NaN and zeros differently; comparisons do
// not. Equal operands differ at most in the sign of a zero: Or keeps the minus, And drops it.
struct Min {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V a, V b) const {
        const V lower = hn::IfThenElse(hn::Lt(a, b), a, b);
        return nan_if_either(d, a, b, hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), lower));
    }
};

struct Max {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V a, V b) const {
        const V higher = hn::IfThenElse(hn::Lt(a, b), b, a);
        return nan_if_either(d, a, b, hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), higher));
    }
};

template <class Lane>
FoldKernel by_op(ReduceOp op) {
    using D = hn::ScalableTag<Lane>;
    switch (op) {
        case ReduceOp::sum:
        case ReduceOp::average:
            return &fold<D, Sum>;
        case ReduceOp::product:
            return &fold<D, Product>;
        case ReduceOp::min:
            return &fold<D, Min>;
        case ReduceOp::max:
            return &fold<D, Max>;
        default:
            return nullptr;
    }
}

FoldKernel float_fold_here(DType dtype, ReduceOp op) {
    return dtype == DType::f32 ? by_op<float>(op) : by_op<double>(op);
}

}  // namespace
}  // namespace nexar::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nexar::compute {

HWY_EXPORT(float_fold_here);

FoldKernel float_fold(DType dtype, ReduceOp op) {
    return HWY_DYNAMIC_DISPATCH(float_fold_here)(dtype, op);
}

}  // namespace nexar::compute
#endif  // HWY_ONCE

// Kernels for f16 and bf16. Sums and products are computed in float and then rounded again: with p
// = 11 or 8 bits, 24 >= 2p + 2, so double rounding does no harm and the result is correctly rounded
// (Figueroa, "When is double rounding innocuous?", 1995).

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/half_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "compute/half-inl.hpp"
#include "compute/kernel.hpp"
#include "compute/loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace nexar::compute::HWY_NAMESPACE {
namespace {

struct Sum {
    HWY_INLINE FloatVector operator()(FloatVector a, FloatVector b) const { return hn::Add(a, b); }
};

struct Product {
    HWY_INLINE FloatVector operator()(FloatVector a, FloatVector b) const { return hn::Mul(a, b); }
};

template <class Op>
struct InF16 {
    template <class D, class V>
    HWY_INLINE V operator()(D /*d*/, V a, V b) const {
        return in_floats_of_f16(Op(), a, b);
    }
};

template <class Op>
struct InBf16 {
    template <class D, class V>
    HWY_INLINE V operator()(D /*d*/, V a, V b) const {
        return in_floats_of_bf16(Op(), a, b);
    }
};

using OrderTag = hn::ScalableTag<std::int16_t>;
using OrderVector = hn::VFromD<OrderTag>;

// Converts sign and magnitude to two's complement and back: the integers are ordered like the
// numbers, with -0 < +0.
HWY_INLINE OrderVector mirrored(OrderVector v) {
    const OrderVector negative = hn::BroadcastSignBit(v);
    return hn::Xor(v, hn::And(negative, hn::Set(OrderTag(), std::int16_t{0x7fff})));
}

// `Infinity` is that of the format; anything above it in magnitude is a NaN.
template <std::int16_t Infinity>
HWY_INLINE auto is_nan(OrderVector v) {
    const OrderTag d;
    const OrderVector magnitude = hn::And(v, hn::Set(d, std::int16_t{0x7fff}));
    return hn::Gt(magnitude, hn::Set(d, Infinity));
}

template <std::int16_t Infinity, std::int16_t Nan>
HWY_INLINE OrderVector nan_if_either(OrderVector a, OrderVector b, OrderVector otherwise) {
    return hn::IfThenElse(hn::Or(is_nan<Infinity>(a), is_nan<Infinity>(b)),
                          hn::Set(OrderTag(), Nan), otherwise);
}

template <std::int16_t Infinity, std::int16_t Nan>
struct Min {
    HWY_INLINE OrderVector operator()(OrderTag /*d*/, OrderVector a, OrderVector b) const {
        return nan_if_either<Infinity, Nan>(a, b, mirrored(hn::Min(mirrored(a), mirrored(b))));
    }
};

template <std::int16_t Infinity, std::int16_t Nan>
struct Max {
    HWY_INLINE OrderVector operator()(OrderTag /*d*/, OrderVector a, OrderVector b) const {
        return nan_if_either<Infinity, Nan>(a, b, mirrored(hn::Max(mirrored(a), mirrored(b))));
    }
};

FoldKernel f16_fold(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum:
        case ReduceOp::average:
            return &fold<F16Tag, InF16<Sum>>;
        case ReduceOp::product:
            return &fold<F16Tag, InF16<Product>>;
        case ReduceOp::min:
            return &fold<OrderTag, Min<0x7c00, 0x7e00>>;
        case ReduceOp::max:
            return &fold<OrderTag, Max<0x7c00, 0x7e00>>;
        default:
            return nullptr;
    }
}

FoldKernel bf16_fold(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum:
        case ReduceOp::average:
            return &fold<BitsTag, InBf16<Sum>>;
        case ReduceOp::product:
            return &fold<BitsTag, InBf16<Product>>;
        case ReduceOp::min:
            return &fold<OrderTag, Min<0x7f80, 0x7fc0>>;
        case ReduceOp::max:
            return &fold<OrderTag, Max<0x7f80, 0x7fc0>>;
        default:
            return nullptr;
    }
}

FoldKernel half_fold_here(DType dtype, ReduceOp op) {
    return dtype == DType::f16 ? f16_fold(op) : bf16_fold(op);
}

}  // namespace
}  // namespace nexar::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nexar::compute {

HWY_EXPORT(half_fold_here);

FoldKernel half_fold(DType dtype, ReduceOp op) {
    return HWY_DYNAMIC_DISPATCH(half_fold_here)(dtype, op);
}

}  // namespace nexar::compute
#endif  // HWY_ONCE

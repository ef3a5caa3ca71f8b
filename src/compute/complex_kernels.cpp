// Kernels for c64 and c128, with interleaved real and imaginary parts. Sums use the kernels of the
// parts.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/complex_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "compute/kernel.hpp"
#include "compute/loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace nexar::compute::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

// One lane cannot hold both parts.
template <class Part>
void product(std::byte* out, const std::byte* a, const std::byte* b, std::size_t bytes) {
    using Number = std::array<Part, 2>;
    for (std::size_t i = 0; i < bytes; i += sizeof(Number)) {
        Number x;
        Number y;
        std::memcpy(&x, a + i, sizeof(x));
        std::memcpy(&y, b + i, sizeof(y));
        const Number z{x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]};
        std::memcpy(out + i, &z, sizeof(z));
    }
}

template <class Part>
constexpr FoldKernel kProduct = &product<Part>;

#else

struct Product {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V a, V b) const {
        const V by_real = hn::Mul(hn::DupEven(a), b);                       // ar*br, ar*bi
        const V by_imaginary = hn::Mul(hn::DupOdd(a), hn::Reverse2(d, b));  // ai*bi, ai*br
        return hn::OddEven(hn::Add(by_real, by_imaginary), hn::Sub(by_real, by_imaginary));
    }
};

template <class Part>
constexpr FoldKernel kProduct = &fold<hn::ScalableTag<Part>, Product>;

#endif  // HWY_TARGET == HWY_SCALAR

FoldKernel complex_product_here(DType dtype) {
    return dtype == DType::c64 ? kProduct<float> : kProduct<double>;
}

}  // namespace
}  // namespace nexar::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nexar::compute {

HWY_EXPORT(complex_product_here);

FoldKernel complex_fold(DType dtype, ReduceOp op) {
    switch (op) {
        case ReduceOp::sum:
        case ReduceOp::average:
            return float_fold(dtype == DType::c64 ? DType::f32 : DType::f64, ReduceOp::sum);
        case ReduceOp::product:
            return HWY_DYNAMIC_DISPATCH(complex_product_here)(dtype);
        default:
            return nullptr;
    }
}

}  // namespace nexar::compute
#endif  // HWY_ONCE

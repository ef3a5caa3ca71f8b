// Integer kernels. Sums and products wrap modulo 2^n, so one kernel serves signed and unsigned
// types.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/integer_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

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

// There is no vector instruction that multiplies bytes. In 16-bit lanes the lower byte of a product
// depends only on the lower bytes; the upper bytes are multiplied separately, with the lower half
// cleared.
struct BytePairProduct {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V a, V b) const {
        const V lower = hn::Set(d, std::uint16_t{0x00ff});
        const V even = hn::And(hn::Mul(a, b), lower);
        const V odd = hn::Mul(hn::ShiftRight<8>(a), hn::AndNot(lower, b));
        return hn::Or(even, odd);
    }
};

struct Min {
    template <class D, class V>
    HWY_INLINE V operator()(D /*d*/, V a, V b) const {
        return hn::Min(a, b);
    }
};

struct Max {
    template <class D, class V>
    HWY_INLINE V operator()(D /*d*/, V a, V b) const {
        return hn::Max(a, b);
    }
};

struct BitAnd {
    template <class D, class V>
    HWY_INLINE V operator()(D /*d*/, V a, V b) const {
        return hn::And(a, b);
    }
};

struct BitOr {
    template <class D, class V>
    HWY_INLINE V operator()(D /*d*/, V a, V b) const {
        return hn::Or(a, b);
    }
};

struct BitXor {
    template <class D, class V>
    HWY_INLINE V operator()(D /*d*/, V a, V b) const {
        return hn::Xor(a, b);
    }
};

template <class D, class M>
HWY_INLINE hn::VFromD<D> one_unless(D d, M is_false) {
    return hn::IfThenZeroElse(is_false, hn::Set(d, hn::TFromD<D>{1}));
}

struct LogicalAnd {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V a, V b) const {
        const V zero = hn::Zero(d);
        return one_unless(d, hn::Or(hn::Eq(a, zero), hn::Eq(b, zero)));
    }
};

struct LogicalOr {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V a, V b) const {
        return one_unless(d, hn::Eq(hn::Or(a, b), hn::Zero(d)));
    }
};

struct LogicalXor {
    template <class D, class V>
    HWY_INLINE V operator()(D d, V a, V b) const {
        const V zero = hn::Zero(d);
        const auto differ = hn::Xor(hn::Eq(a, zero), hn::Eq(b, zero));
        return hn::IfThenElseZero(differ, hn::Set(d, hn::TFromD<D>{1}));
    }
};

template <class Lane, class Op>
constexpr FoldKernel kFold = &fold<hn::ScalableTag<Lane>, Op>;

template <class Op>
FoldKernel by_size(DType dtype) {
    switch (size_of(dtype)) {
        case 1:
            return kFold<std::uint8_t, Op>;
        case 2:
            return kFold<std::uint16_t, Op>;
        case 4:
            return kFold<std::uint32_t, Op>;
        default:
            return kFold<std::uint64_t, Op>;
    }
}

FoldKernel product(DType dtype) {
    switch (size_of(dtype)) {
        case 1:
            return kFold<std::uint16_t, BytePairProduct>;
        case 2:
            return kFold<std::uint16_t, Product>;
        case 4:
            return kFold<std::uint32_t, Product>;
        default:
            return kFold<std::uint64_t, Product>;
    }
}

template <class Op>
FoldKernel by_type(DType dtype) {
    switch (dtype) {
        case DType::i8:
            return kFold<std::int8_t, Op>;
        case DType::u8:
            return kFold<std::uint8_t, Op>;
        case DType::i16:
            return kFold<std::int16_t, Op>;
        case DType::u16:
            return kFold<std::uint16_t, Op>;
        case DType::i32:
            return kFold<std::int32_t, Op>;
        case DType::u32:
            return kFold<std::uint32_t, Op>;
        case DType::i64:
            return kFold<std::int64_t, Op>;
        default:
            return kFold<std::uint64_t, Op>;
    }
}

FoldKernel integer_fold_here(DType dtype, ReduceOp op) {
    switch (op) {
        case ReduceOp::sum:
        case ReduceOp::average:
            return by_size<Sum>(dtype);
        case ReduceOp::product:
            return product(dtype);
        case ReduceOp::min:
            return by_type<Min>(dtype);
        case ReduceOp::max:
            return by_type<Max>(dtype);
        case ReduceOp::bit_and:
            return kFold<std::uint64_t, BitAnd>;
        case ReduceOp::bit_or:
            return kFold<std::uint64_t, BitOr>;
        case ReduceOp::bit_xor:
            return kFold<std::uint64_t, BitXor>;
        case ReduceOp::logical_and:
            return by_size<LogicalAnd>(dtype);
        case ReduceOp::logical_or:
            return by_size<LogicalOr>(dtype);
        case ReduceOp::logical_xor:
            return by_size<LogicalXor>(dtype);
        default:
            return nullptr;
    }
}

}  // namespace
}  // namespace nexar::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nexar::compute {

HWY_EXPORT(integer_fold_here);

FoldKernel integer_fold(DType dtype, ReduceOp op) {
    return HWY_DYNAMIC_DISPATCH(integer_fold_here)(dtype, op);
}

}  // namespace nexar::compute
#endif  // HWY_ONCE

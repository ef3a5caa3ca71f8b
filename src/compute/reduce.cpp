#include "compute/reduce.hpp"

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "base/assert.hpp"

namespace nexar::compute {

namespace {

FoldKernel fold_kernel(DType dtype, ReduceOp op) {
    switch (dtype) {
        case DType::i8:
        case DType::u8:
        case DType::i16:
        case DType::u16:
        case DType::i32:
        case DType::u32:
        case DType::i64:
        case DType::u64:
            return integer_fold(dtype, op);
        case DType::f16:
        case DType::bf16:
            return half_fold(dtype, op);
        case DType::f32:
        case DType::f64:
            return float_fold(dtype, op);
        case DType::c64:
        case DType::c128:
            return complex_fold(dtype, op);
        default:
            return located_fold(dtype, op);
    }
}

Error unsupported(DType dtype, ReduceOp op) {
    std::string allowed;
    for (auto number = static_cast<int>(ReduceOp::sum);
         number <= static_cast<int>(ReduceOp::max_location); ++number) {
        const auto candidate = static_cast<ReduceOp>(number);
        if (fold_kernel(dtype, candidate) == nullptr) continue;
        if (!allowed.empty()) allowed += ", ";
        allowed += name(candidate);
    }
    if (dtype == DType::opaque) {
        return {Errc::unsupported, fmt::format("operator {} works only on numbers; pass your own "
                                               "operator to reduce elements of another type",
                                               name(op))};
    }
    if (allowed.empty()) {
        return {
            Errc::unsupported,
            fmt::format(
                "cannot reduce elements of type {} (number {}): it is not an element type of nexar",
                name(dtype), static_cast<int>(dtype))};
    }
    return {Errc::unsupported, fmt::format("operator {} (number {}) is not defined for {}: use "
                                           "one of {}",
                                           name(op), static_cast<int>(op), name(dtype), allowed)};
}

bool same_or_apart(const std::byte* out, const std::byte* in, std::size_t bytes) {
    // Unlike <=, std::less_equal may compare pointers into different arrays.
    const std::less_equal<> not_after;
    return out == in || not_after(out + bytes, in) || not_after(in + bytes, out);
}

}  // namespace

Reducer::Reducer(DType dtype, std::size_t element_size, std::shared_ptr<const UserFold> user,
                 bool commutative) noexcept
    : dtype_(dtype),
      commutative_(commutative),
      element_size_(element_size),
      user_(std::move(user)) {
    NEXAR_ASSERT(user_ != nullptr && element_size_ != 0);
}

Reducer::Reducer(DType dtype, FoldKernel kernel, DivideKernel divide) noexcept
    : dtype_(dtype),
      commutative_(true),
      element_size_(size_of(dtype)),
      kernel_(kernel),
      divide_(divide) {}

void Reducer::fold(std::byte* out, const std::byte* a, const std::byte* b,
                   std::size_t count) const {
    if (count == 0) return;
    NEXAR_ASSERT(count <= std::numeric_limits<std::size_t>::max() / element_size_);
    const std::size_t bytes = count * element_size_;
    NEXAR_ASSERT(same_or_apart(out, a, bytes) && same_or_apart(out, b, bytes),
                 "the result must be one of the operands or overlap neither");
    if (user_ != nullptr) {
        user_->fold(out, a, b, count);
    } else {
        kernel_(out, a, b, bytes);
    }
}

void Reducer::finish(std::byte* data, std::size_t count, std::uint32_t world) const {
    NEXAR_ASSERT(world != 0, "an average needs at least one rank");
    if (divide_ == nullptr || world == 1 || count == 0) return;
    NEXAR_ASSERT(count <= std::numeric_limits<std::size_t>::max() / element_size_);
    divide_(data, count * element_size_, world);
}

Result<Reducer> reducer_for(DType dtype, ReduceOp op) {
    const FoldKernel kernel = fold_kernel(dtype, op);
    if (kernel == nullptr) return unsupported(dtype, op);
    return Reducer(dtype, kernel, op == ReduceOp::average ? divide(dtype) : nullptr);
}

Result<std::size_t> byte_count(DType dtype, std::uint64_t count) {
    const std::size_t size = size_of(dtype);
    if (size == 0) {
        return Error(Errc::invalid_argument,
                     fmt::format("number {} is not an element type", static_cast<int>(dtype)));
    }
    const std::uint64_t most = std::numeric_limits<std::size_t>::max() / size;
    if (count > most) {
        return Error(
            Errc::invalid_argument,
            fmt::format(
                "{} elements of {} ({} bytes each) exceed the address space; the limit is {}",
                count, name(dtype), size, most));
    }
    return static_cast<std::size_t>(count) * size;
}

}  // namespace nexar::compute

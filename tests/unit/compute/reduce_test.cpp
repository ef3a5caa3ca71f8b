#include "compute/reduce.hpp"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "unit/compute/support.hpp"

namespace nexar::compute {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the support of these tests

TEST(ReducerFor, supports_exactly_the_documented_pairs) {
    for (const DType dtype : kDTypes) {
        for (const ReduceOp op : kOps) {
            const Result<Reducer> reducer = reducer_for(dtype, op);
            ASSERT_EQ(reducer.has_value(), makes_sense(dtype, op)) << name(dtype) << name(op);
            if (!reducer) continue;
            EXPECT_EQ(reducer->dtype(), dtype);
            EXPECT_EQ(reducer->element_size(), size_of(dtype));
            EXPECT_TRUE(reducer->commutative());
        }
    }
}

TEST(ReducerFor, error_names_the_unsupported_pair_and_the_alternatives) {
    const Result<Reducer> reducer = reducer_for(DType::c64, ReduceOp::bit_or);
    ASSERT_FALSE(reducer);
    EXPECT_EQ(reducer.error().code(), Errc::unsupported);
    EXPECT_EQ(
        reducer.error().cause(),
        "operator bit_or (number 7) is not defined for c64: use one of sum, product, average");
}

TEST(ReducerFor, unknown_types_and_operators_are_unsupported) {
    for (const int number : {0, 15, 32, 45, 255}) {
        const Result<Reducer> reducer = reducer_for(static_cast<DType>(number), ReduceOp::sum);
        ASSERT_FALSE(reducer);
        EXPECT_EQ(reducer.error().code(), Errc::unsupported);
    }
    EXPECT_FALSE(reducer_for(DType::i32, static_cast<ReduceOp>(0)));
    EXPECT_FALSE(reducer_for(DType::i32, static_cast<ReduceOp>(14)));
    EXPECT_FALSE(reducer_for(DType::f64, static_cast<ReduceOp>(255)));
}

/// As either operand, the identity leaves the other element unchanged.
void expect_identity(DType dtype, ReduceOp op, const Bytes& elements) {
    const std::size_t size = size_of(dtype);
    Bytes identity(size);
    ASSERT_TRUE(put_identity(dtype, op, identity.data()));
    const Reducer reducer = reducer_for(dtype, op).value();
    for (std::size_t at = 0; at < elements.size(); at += size) {
        Bytes out(size);
        reducer.fold(out.data(), identity.data(), elements.data() + at, 1);
        const Bytes element(elements.begin() + static_cast<std::ptrdiff_t>(at),
                            elements.begin() + static_cast<std::ptrdiff_t>(at + size));
        ASSERT_EQ(out, element) << name(dtype) << ' ' << name(op);
        reducer.fold(out.data(), elements.data() + at, identity.data(), 1);
        ASSERT_EQ(out, element) << name(dtype) << ' ' << name(op);
    }
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
}

TEST(Identity, leaves_every_element_unchanged) {
    for (const ReduceOp op : kOps) {
        if (op == ReduceOp::average) continue;
        const bool logical = op == ReduceOp::logical_and || op == ReduceOp::logical_or ||
                             op == ReduceOp::logical_xor;
        const auto numbers = [&]<class T>(std::vector<T> values) {
            if (!makes_sense(dtype_of<T>, op)) return;
            if (logical) values = {T(0), T(1)};
            expect_identity(dtype_of<T>, op, bytes_of(values));
        };
        numbers(std::vector<std::int8_t>{-128, -1, 0, 1, 127});
        numbers(std::vector<std::uint8_t>{0, 1, 128, 255});
        numbers(std::vector<std::int16_t>{INT16_MIN, -1, 0, 5, INT16_MAX});
        numbers(std::vector<std::uint16_t>{0, 5, UINT16_MAX});
        numbers(std::vector<std::int32_t>{INT32_MIN, -1, 0, 5, INT32_MAX});
        numbers(std::vector<std::uint32_t>{0, 5, UINT32_MAX});
        numbers(std::vector<std::int64_t>{INT64_MIN, -1, 0, 5, INT64_MAX});
        numbers(std::vector<std::uint64_t>{0, 5, UINT64_MAX});
        if (logical) continue;
        constexpr float kInfinity = std::numeric_limits<float>::infinity();
        numbers(std::vector<float>{-kInfinity, -3.5F, 0, 1e30F, kInfinity});
        numbers(std::vector<double>{-kInfinity, -3.5, 0, 1e300, kInfinity});
        numbers(std::vector<float16>{float16(-kInfinity), float16(-3.5F), float16(kInfinity)});
        numbers(std::vector<bfloat16>{bfloat16(-kInfinity), bfloat16(9), bfloat16(kInfinity)});
        numbers(std::vector<std::complex<float>>{{1, -2}, {0, 3}});
        numbers(std::vector<std::complex<double>>{{1, -2}, {0, 3}});
        numbers(std::vector<Located<double>>{{-kInfinity, 3}, {kInfinity, 7}});
        numbers(std::vector<Located<std::int64_t>>{{INT64_MIN, 3}, {INT64_MAX, 7}});
    }
}

TEST(Identity, of_an_average_or_an_unsupported_pair_is_an_error) {
    Bytes room(16);
    EXPECT_EQ(put_identity(DType::f32, ReduceOp::average, room.data()).error().code(),
              Errc::unsupported);
    EXPECT_EQ(put_identity(DType::f32, ReduceOp::bit_or, room.data()).error().code(),
              Errc::unsupported);
    EXPECT_EQ(put_identity(DType::opaque, ReduceOp::sum, room.data()).error().code(),
              Errc::unsupported);
}

TEST(ByteCount, multiplies_until_it_would_overflow) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::size_t>::max() / 16;
    EXPECT_EQ(*byte_count(DType::c128, 0), 0U);
    EXPECT_EQ(*byte_count(DType::i16, 5), 10U);
    EXPECT_EQ(*byte_count(DType::c128, kMost), kMost * 16);
    const Result<std::size_t> too_many = byte_count(DType::c128, kMost + 1);
    ASSERT_FALSE(too_many);
    EXPECT_EQ(too_many.error().code(), Errc::invalid_argument);
    EXPECT_EQ(byte_count(static_cast<DType>(0), 1).error().code(), Errc::invalid_argument);
}

/// A range inside a larger allocation at a given misalignment. Detects kernels that write outside
/// it and, under ASan, those that read beyond its end.
class Misaligned {
public:
    Misaligned(const Bytes& content, std::size_t offset)
        : offset_(offset), memory_(offset + content.size(), std::byte{0x5a}) {
        if (!content.empty()) std::memcpy(memory_.data() + offset, content.data(), content.size());
    }
    std::byte* data() { return memory_.data() + offset_; }
    Bytes content() const {
        return {memory_.begin() + static_cast<std::ptrdiff_t>(offset_), memory_.end()};
    }
    bool front_untouched() const {
        return std::all_of(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(offset_),
                           [](std::byte b) { return b == std::byte{0x5a}; });
    }

private:
    std::size_t offset_;
    Bytes memory_;
};

struct Case {
    DType dtype;
    ReduceOp op;
    Bytes a;
    Bytes b;
    std::array<std::size_t, 3> offsets;
};

enum class Form { apart, onto_a, onto_b };

void expect_fold(const Reducer& reducer, const Case& c, Form form, const Bytes& want) {
    Misaligned a(c.a, c.offsets[0]);
    Misaligned b(c.b, c.offsets[1]);
    Misaligned apart(Bytes(c.a.size(), std::byte{0xee}), c.offsets[2]);
    Misaligned& out = form == Form::apart ? apart : form == Form::onto_a ? a : b;
    reducer.fold(out.data(), a.data(), b.data(), c.a.size() / size_of(c.dtype));
    ASSERT_EQ(difference(c.dtype, c.op, out.content(), want), "")
        << "form " << static_cast<int>(form) << " offsets " << c.offsets[0] << " " << c.offsets[1]
        << " " << c.offsets[2];
    EXPECT_TRUE(a.front_untouched() && b.front_untouched() && apart.front_untouched());
    EXPECT_TRUE(form == Form::onto_a || a.content() == c.a);
    EXPECT_TRUE(form == Form::onto_b || b.content() == c.b);
}

void expect_folds_of(DType dtype, ReduceOp op, std::size_t count, Random& random) {
    Case c{dtype,
           op,
           random_elements(dtype, count, random),
           random_elements(dtype, count, random),
           {random() % 64, random() % 64, random() % 64}};
    const Bytes want = reference_fold(dtype, op, c.a, c.b);
    on_every_target([&] {
        const Reducer reducer = *reducer_for(dtype, op);
        expect_fold(reducer, c, Form::apart, want);
        expect_fold(reducer, c, Form::onto_a, want);
        expect_fold(reducer, c, Form::onto_b, want);
    });
}

// Whole vectors, unrolled groups of them and every length of tail, for vectors of up to 256 bytes.
TEST(Reducer, folds_every_pair_at_any_length_and_alignment_as_defined) {
    Random random(seed());
    for (const DType dtype : kDTypes) {
        for (const ReduceOp op : kOps) {
            if (!makes_sense(dtype, op)) continue;
            for (const std::size_t count : {0U, 1U, 2U, 3U, 7U}) {
                ASSERT_NO_FATAL_FAILURE(expect_folds_of(dtype, op, count, random));
            }
            for (std::size_t i = 0; i < scaled(12); ++i) {
                const std::size_t count = random() % (3000 / size_of(dtype));
                ASSERT_NO_FATAL_FAILURE(expect_folds_of(dtype, op, count, random));
            }
        }
    }
}

// Larger than the size from which results bypass the caches, at several alignments.
TEST(Reducer, a_result_larger_than_the_caches_has_the_same_bits_as_small_ones) {
    constexpr std::size_t kBytes = (std::size_t{33} << 20) + 48;
    constexpr std::size_t kPart = 4096;
    Random random(seed());
    Bytes a(kBytes + 64);
    Bytes b(kBytes + 64);
    for (std::size_t i = 0; i + 8 <= a.size(); i += 8) {
        const std::uint64_t x = random();
        std::memcpy(a.data() + i, &x, 8);
        std::memcpy(b.data() + i, &x, 8);
    }
    Bytes out(kBytes + 64);
    Bytes part(kPart);
    for (const auto& [dtype, op] :
         {std::pair(DType::f16, ReduceOp::sum), std::pair(DType::u32, ReduceOp::sum),
          std::pair(DType::u8, ReduceOp::max)}) {
        const std::size_t offset = random() % 3 * 8;
        on_every_target([&] {
            const Reducer reducer = *reducer_for(dtype, op);
            const std::size_t size = size_of(dtype);
            reducer.fold(out.data() + offset, a.data(), b.data() + 2, kBytes / size);
            for (std::size_t at = 0; at < kBytes; at += kPart) {
                const std::size_t bytes = std::min(kPart, kBytes - at);
                reducer.fold(part.data(), a.data() + at, b.data() + 2 + at, bytes / size);
                ASSERT_EQ(std::memcmp(part.data(), out.data() + offset + at, bytes), 0) << at;
            }
        });
    }
}

TEST(Reducer, both_operands_and_the_result_may_be_the_same_range) {
    std::vector<std::int32_t> x(100);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int32_t>(i * i);
    const std::vector<std::int32_t> before = x;
    auto* data = reinterpret_cast<std::byte*>(x.data());
    reducer_for(DType::i32, ReduceOp::sum)->fold(data, data, data, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], 2 * before[i]);
}

TEST(Reducer, a_count_of_zero_folds_nothing) {
    reducer_for(DType::f32, ReduceOp::average)->fold(nullptr, nullptr, nullptr, 0);
    reducer_for(DType::f32, ReduceOp::average)->finish(nullptr, 0, 3);
}

TEST(Reducer, finish_changes_only_averages) {
    Random random(seed());
    for (const DType dtype : kDTypes) {
        for (const ReduceOp op : kOps) {
            if (!makes_sense(dtype, op) || op == ReduceOp::average) continue;
            const Bytes before = random_elements(dtype, 20, random);
            Bytes data = before;
            reducer_for(dtype, op)->finish(data.data(), 20, 7);
            EXPECT_EQ(data, before) << name(dtype) << name(op);
        }
    }
}

TEST(ReducerDeathTest, a_partial_overlap_of_result_and_operand_is_a_bug) {
    Bytes memory(300);
    const Reducer reducer = *reducer_for(DType::i16, ReduceOp::max);
    std::byte* p = memory.data();
    EXPECT_DEATH(reducer.fold(p + 2, p, p + 200, 10), "overlap neither");
    EXPECT_DEATH(reducer.fold(p + 200, p, p + 219, 10), "overlap neither");
    reducer.fold(p + 20, p, p + 40, 10);  // touching is not overlapping
}

TEST(ReducerDeathTest, an_average_over_zero_ranks_is_a_bug) {
    Bytes memory(8);
    const Reducer reducer = *reducer_for(DType::i64, ReduceOp::average);
    EXPECT_DEATH(reducer.finish(memory.data(), 1, 0), "at least one rank");
}

}  // namespace
}  // namespace nexar::compute

// Folds of arrays far larger than the caches, against the triad and against each other.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compute/reduce.hpp"
#include "compute/user_op.hpp"
#include "reduce_bench.hpp"

namespace nexar::bench {

namespace {

using compute::Reducer;

constexpr std::size_t kBytes = std::size_t{64} << 20;
constexpr float kScale = 3;

Reducer reducer(DType dtype, ReduceOp op) {
    return *compute::reducer_for(dtype, op);
}

/// Small whole numbers, exact in every format, so that every correct kernel gives the same sums.
template <class T, class F>
void fill(const Buffer& buffer, F value) {
    T* elements = buffer.as<T>();
    for (std::size_t i = 0; i < buffer.size() / sizeof(T); ++i) {
        elements[i] = static_cast<T>(static_cast<float>(value(i)));
    }
}

std::size_t left_of(std::size_t i) {
    return i % 61;
}
std::size_t right_of(std::size_t i) {
    return i % 53;
}

template <class T>
bool equals(const Buffer& buffer, float scale) {
    const T* elements = buffer.as<T>();
    for (std::size_t i = 0; i < buffer.size() / sizeof(T); ++i) {
        const float want = static_cast<float>(left_of(i)) + scale * static_cast<float>(right_of(i));
        if (static_cast<float>(elements[i]) != want) {
            fmt::print(stderr, "wrong result: element {} is {}, should be {}\n", i,
                       static_cast<float>(elements[i]), want);
            return false;
        }
    }
    return true;
}

/// The timed runs change their buffers, so this runs each kernel once more on known data.
template <class T>
bool sums_rightly(const Reducer& sum, const Buffer& a, const Buffer& b, const Buffer& out) {
    const std::size_t count = kBytes / sizeof(T);
    fill<T>(a, left_of);
    fill<T>(b, right_of);
    sum.fold(out.data(), a.data(), b.data(), count);
    if (!equals<T>(out, 1)) return false;
    sum.fold(a.data(), a.data(), b.data(), count);
    return equals<T>(a, 1);
}

double per_second(const Timing& timing) {
    // Two arrays read and one written, as STREAM counts. Noise only adds time, so the fastest run
    // counts.
    return 3 * static_cast<double>(kBytes) / timing.fastest;
}

}  // namespace

bool bench_memory(Report& report, const MeasureOptions& options) {
    const Buffer out(kBytes);
    const Buffer a(kBytes);
    const Buffer b(kBytes);
    fill<float>(a, left_of);
    fill<float>(b, right_of);
    std::memset(out.data(), 0, kBytes);
    const Reducer f32 = reducer(DType::f32, ReduceOp::sum);
    const Reducer f16 = reducer(DType::f16, ReduceOp::sum);
    const Reducer bf16 = reducer(DType::bf16, ReduceOp::sum);
    const Reducer user = compute::reducer_of<float>([](float x, float y) { return x + y; }, true);
    const std::size_t floats = kBytes / sizeof(float);
    const auto in_place = [&](const Reducer& sum) {
        return [&] { sum.fold(a.data(), a.data(), b.data(), kBytes / sum.element_size()); };
    };
    const std::vector<Timing> timings = measure(
        {[&] { triad(out.as<float>(), a.as<float>(), b.as<float>(), kScale, floats); },
         [&] { streaming_triad(out.as<float>(), a.as<float>(), b.as<float>(), kScale, floats); },
         in_place(f32), [&] { f32.fold(out.data(), a.data(), b.data(), floats); }, in_place(f16),
         in_place(bf16), in_place(user)},
        options);

    const double plain = per_second(timings[0]);
    const double streaming = per_second(timings[1]);
    const double best_triad = std::max(plain, streaming);
    const double onto = per_second(timings[2]);
    const double apart = per_second(timings[3]);
    report.row("triad", plain / 1e9, "GB/s");
    report.row("streaming_triad", streaming / 1e9, "GB/s");
    report.row("f32_sum_in_place", onto / 1e9, "GB/s");
    report.row("f32_sum_three_operand", apart / 1e9, "GB/s");
    report.row("f32_sum_in_place_over_triad", onto / best_triad, "ratio");
    report.row("f32_sum_three_operand_over_triad", apart / best_triad, "ratio");
    report.row("f32_sum_over_triad", std::min(onto, apart) / best_triad, "ratio");
    report.row("f16_sum_over_f32", per_second(timings[4]) / onto, "ratio");
    report.row("bf16_sum_over_f32", per_second(timings[5]) / onto, "ratio");
    report.row("user_op_over_builtin", per_second(timings[6]) / onto, "ratio");

    if (!sums_rightly<float16>(f16, a, b, out) || !sums_rightly<bfloat16>(bf16, a, b, out) ||
        !sums_rightly<float>(user, a, b, out) || !sums_rightly<float>(f32, a, b, out)) {
        return false;
    }
    fill<float>(a, left_of);
    triad(out.as<float>(), a.as<float>(), b.as<float>(), kScale, floats);
    if (!equals<float>(out, kScale)) return false;
    streaming_triad(out.as<float>(), a.as<float>(), b.as<float>(), kScale, floats);
    return equals<float>(out, kScale);
}

}  // namespace nexar::bench

// STREAM's triad, a measure of one core's memory bandwidth: McCalpin, "Memory Bandwidth and Machine
// Balance in Current High Performance Computers", 1995.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce_bench_triad.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "reduce_bench.hpp"

HWY_BEFORE_NAMESPACE();
namespace nexar::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void triad_here(float* a, const float* b, const float* c, float s, std::size_t count) {
    const hn::ScalableTag<float> d;
    const auto factor = hn::Set(d, s);
    for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
        hn::Store(hn::MulAdd(factor, hn::Load(d, c + i), hn::Load(d, b + i)), d, a + i);
    }
}

void streaming_triad_here(float* a, const float* b, const float* c, float s, std::size_t count) {
    const hn::ScalableTag<float> d;
    const auto factor = hn::Set(d, s);
    for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
        hn::Stream(hn::MulAdd(factor, hn::Load(d, c + i), hn::Load(d, b + i)), d, a + i);
    }
    hwy::FlushStream();
}

}  // namespace
}  // namespace nexar::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nexar::bench {

HWY_EXPORT(triad_here);
HWY_EXPORT(streaming_triad_here);

void triad(float* a, const float* b, const float* c, float s, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(triad_here)(a, b, c, s, count);
}

void streaming_triad(float* a, const float* b, const float* c, float s, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(streaming_triad_here)(a, b, c, s, count);
}

}  // namespace nexar::bench
#endif  // HWY_ONCE

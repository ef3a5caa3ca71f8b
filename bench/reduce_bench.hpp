#pragma once

// The parts of reduce_bench.

#include <cstddef>
#include <memory>
#include <new>
#include <nexar/dtype.hpp>

#include "measure.hpp"
#include "report.hpp"

namespace nexar::bench {

/// Uninitialised memory on its own pages, like the buffer of a message.
class Buffer {
public:
    explicit Buffer(std::size_t bytes)
        : memory_(static_cast<std::byte*>(::operator new(bytes, kPage))), bytes_(bytes) {}
    std::byte* data() const { return memory_.get(); }
    std::size_t size() const { return bytes_; }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(memory_.get());
    }

private:
    static constexpr std::align_val_t kPage{4096};
    struct Free {
        void operator()(std::byte* p) const { ::operator delete(p, kPage); }
    };
    std::unique_ptr<std::byte, Free> memory_;
    std::size_t bytes_;
};

using Loop = void (*)(std::byte* out, const std::byte* a, const std::byte* b, std::size_t count);

/// out[i] = a[i] op b[i], one element at a time: a plain loop, compiled without vectorisation.
Loop scalar_loop(DType dtype, ReduceOp op);

/// a[i] = b[i] + s * c[i], STREAM's triad, with the vectors of the best target; the streaming
/// version writes past the caches. `count` must be a multiple of 64 and the arrays aligned to 64
/// bytes.
void triad(float* a, const float* b, const float* c, float s, std::size_t count);
void streaming_triad(float* a, const float* b, const float* c, float s, std::size_t count);

/// Each of these adds its rows and returns true if all results were right.
bool bench_memory(Report& report, const MeasureOptions& options);
bool bench_integers(Report& report, const MeasureOptions& options);
bool bench_edges(Report& report, const MeasureOptions& options);

}  // namespace nexar::bench

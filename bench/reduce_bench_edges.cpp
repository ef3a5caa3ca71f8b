// The cost of misalignment, of input in pieces, and of other operators, with data in the cache.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "compute/byte_fold.hpp"
#include "compute/reduce.hpp"
#include "compute/user_op.hpp"
#include "reduce_bench.hpp"

namespace nexar::bench {

namespace {

constexpr std::size_t kBytes = 256 << 10;
constexpr std::size_t kPacket = 1350;  // payload of a QUIC packet

struct Selected {
    DType dtype;
    ReduceOp op;
};

constexpr std::array kSelected{Selected{DType::f32, ReduceOp::sum},
                               Selected{DType::f32, ReduceOp::min},
                               Selected{DType::f64, ReduceOp::max},
                               Selected{DType::f16, ReduceOp::sum},
                               Selected{DType::bf16, ReduceOp::sum},
                               Selected{DType::bf16, ReduceOp::max},
                               Selected{DType::c64, ReduceOp::product},
                               Selected{DType::i8, ReduceOp::product},
                               Selected{DType::located_f32, ReduceOp::min_location}};

void fill(const Buffer& buffer) {
    auto* elements = buffer.as<float>();
    for (std::size_t i = 0; i < buffer.size() / sizeof(float); ++i) {
        elements[i] = static_cast<float>(i % 97);
    }
}

void feed_packets(const compute::Reducer& reducer, const Buffer& local, const Buffer& incoming) {
    compute::ByteFold fold(reducer, local.data(), local.data(), kBytes / reducer.element_size(),
                           compute::Side::right);
    for (std::size_t at = 0; at < kBytes; at += kPacket) {
        const std::size_t size = std::min(kPacket, kBytes - at);
        fold.feed(at, std::span(incoming.data() + at, size)).value();
    }
}

}  // namespace

bool bench_edges(Report& report, const MeasureOptions& options) {
    const Buffer a(kBytes + 64);
    const Buffer b(kBytes + 64);
    const Buffer c(kBytes + 64);
    for (const Buffer* buffer : {&a, &b, &c}) fill(*buffer);
    for (const auto& [dtype, op] : kSelected) {
        const compute::Reducer reducer = *compute::reducer_for(dtype, op);
        const std::size_t count = kBytes / reducer.element_size();
        const std::vector<Timing> timings =
            measure({[&] { reducer.fold(c.data(), a.data(), b.data(), count); }}, options);
        report.row(fmt::format("{}_{}_256_kib", name(dtype), name(op)),
                   3 * static_cast<double>(kBytes) / timings[0].fastest / 1e9, "GB/s");
    }

    const compute::Reducer sum = *compute::reducer_for(DType::f32, ReduceOp::sum);
    const compute::Reducer user =
        compute::reducer_of<float>([](float x, float y) { return x + y; }, true);
    const std::size_t count = kBytes / sizeof(float);
    const std::vector<Timing> timings = measure(
        {[&] { sum.fold(a.data(), a.data(), b.data(), count); },
         [&] { sum.fold(a.data() + 4, a.data() + 4, b.data() + 12, count); },
         [&] { feed_packets(sum, a, b); }, [&] { user.fold(a.data(), a.data(), b.data(), count); }},
        options);
    report.row("misaligned_over_aligned", timings[0].fastest / timings[1].fastest, "ratio");
    report.row("packets_over_whole", timings[0].fastest / timings[2].fastest, "ratio");
    report.row("user_op_over_builtin_256_kib", timings[0].fastest / timings[3].fastest, "ratio");

    fill(a);
    fill(c);
    feed_packets(sum, a, b);
    user.fold(c.data(), c.data(), b.data(), count);
    const bool right = std::memcmp(a.data(), c.data(), kBytes) == 0;
    if (!right)
        fmt::print(stderr,
                   "wrong result: folding packets and folding at once give different results\n");
    return right;
}

}  // namespace nexar::bench

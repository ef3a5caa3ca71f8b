/// Measures the parts of `base` on the path of every message: the buffer pool, the event recorder,
/// counters and the bounded queue.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/assert.hpp"
#include "base/bounded_queue.hpp"
#include "base/buffer_pool.hpp"
#include "base/counter.hpp"
#include "base/recorder.hpp"
#include "measure.hpp"
#include "report.hpp"

namespace nexar::bench {
namespace {

constexpr std::size_t kBuffer = 64 << 10;
constexpr int kBatch = 256;  // operations per timed call, to make the cost of the call negligible

double median_ns(const std::function<void()>& one_batch) {
    return measure({one_batch}).front().median / kBatch * 1e9;
}

void checkout_and_return(BufferPool& pool, std::size_t bytes) {
    auto buffer = pool.checkout(bytes);
    keep(buffer->data());
}

double pool_hit_ns() {
    BufferPool pool(PoolProfile::training());
    return median_ns([&pool] {
        for (int i = 0; i < kBatch; ++i) checkout_and_return(pool, kBuffer);
    });
}

// The cost that a miss adds to the allocation: scanning a shelf of 256 places that all hold another
// class.
double pool_miss_scan_ns() {
    PoolShelf shelf(256);
    BufferPool pool(PoolProfile::training());
    std::vector<PooledBuffer> blocks;
    for (std::size_t i = 0; i < shelf.places(); ++i) {
        blocks.push_back(pool.checkout(1).value());
        NEXAR_ASSERT(shelf.put(blocks.back().data(), 0));
    }
    return median_ns([&shelf] {
        for (int i = 0; i < kBatch; ++i) keep(shelf.take(class_for(kBuffer)));
    });
}

double recorder_ns() {
    Recorder recorder({});
    std::uint64_t n = 0;
    return median_ns([&] {
        for (int i = 0; i < kBatch; ++i, ++n) {
            recorder.record({.time = TimePoint(Duration(n)), .kind = EventKind::mark, .c = n});
        }
    });
}

double counter_ns() {
    Counter counter({});
    return median_ns([&counter] {
        for (int i = 0; i < kBatch; ++i) {
            counter.add();
            keep(&counter);
        }
    });
}

double queue_ns() {
    BoundedQueue<std::uint64_t> queue(1000);
    return median_ns([&queue] {
        for (std::uint64_t i = 0; i < kBatch; ++i) {
            const bool pushed = queue.try_push(i);
            const auto popped = queue.try_pop();
            keep(&pushed);
            keep(&popped);
        }
    });
}

// Total operations per second of two threads that start together; the median of several
// repetitions. `step(thread)` performs some operations and returns their number.
double two_threads_per_s(const std::function<std::uint64_t(int thread)>& step) {
    constexpr int kRepetitions = 9;
    constexpr auto kTime = std::chrono::milliseconds(100);
    std::vector<double> rates;
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
        std::atomic<int> ready{0};
        std::atomic<bool> stop{false};
        std::atomic<std::uint64_t> done{0};
        std::vector<std::jthread> threads;
        threads.reserve(2);
        for (int thread = 0; thread < 2; ++thread) {
            threads.emplace_back([&, thread] {
                std::uint64_t count = 0;
                ready.fetch_add(1);
                while (ready.load() < 2) std::this_thread::yield();
                while (!stop.load(std::memory_order_relaxed)) count += step(thread);
                done.fetch_add(count);
            });
        }
        while (ready.load() < 2) std::this_thread::yield();
        const auto start = std::chrono::steady_clock::now();
        std::this_thread::sleep_for(kTime);
        stop = true;
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
        threads.clear();
        rates.push_back(static_cast<double>(done.load()) / passed.count());
    }
    std::ranges::sort(rates);
    return rates[rates.size() / 2];
}

double pool_two_threads_per_s() {
    BufferPool pool(PoolProfile::training());
    return two_threads_per_s([&pool](int) {
        for (int i = 0; i < kBatch; ++i) checkout_and_return(pool, kBuffer);
        return std::uint64_t{kBatch};
    });
}

// Values that pass through the queue from one producer to one consumer, which yield to each other
// when it is full or empty.
double queue_two_threads_per_s() {
    BoundedQueue<std::uint64_t> queue(1000);
    const auto push = [&queue] {
        std::uint64_t i = 0;
        while (i < kBatch && queue.try_push(i)) ++i;
        if (i < kBatch) std::this_thread::yield();
        return std::uint64_t{0};
    };
    const auto pop = [&queue] {
        std::uint64_t popped = 0;
        while (popped < kBatch && queue.try_pop()) ++popped;
        if (popped < kBatch) std::this_thread::yield();
        return popped;
    };
    return two_threads_per_s([&](int thread) { return thread == 0 ? push() : pop(); });
}

}  // namespace
}  // namespace nexar::bench

int main(int argc, char** argv) {
    using namespace nexar::bench;
    CLI::App app("Speed of the buffer pool, event recorder, counters and bounded queue");
    std::string json;
    app.add_option("--json", json, "Also write the rows to this file, one JSON object per line");
    CLI11_PARSE(app, argc, argv);

    Report report(json);
    report.row("pool_checkout_return_64k_ns", pool_hit_ns(), "ns");
    report.row("pool_checkout_return_64k_two_threads_per_s", pool_two_threads_per_s(), "1/s");
    report.row("pool_miss_scan_ns", pool_miss_scan_ns(), "ns");
    report.row("recorder_event_ns", recorder_ns(), "ns");
    report.row("counter_add_ns", counter_ns(), "ns");
    report.row("bounded_queue_push_pop_ns", queue_ns(), "ns");
    report.row("bounded_queue_two_threads_per_s", queue_two_threads_per_s(), "1/s");
    return report.finish() ? 0 : 1;
}

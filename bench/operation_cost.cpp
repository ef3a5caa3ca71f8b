#include "operation_cost.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <nexar/nexar.hpp>
#include <span>
#include <vector>

#include "base/recorder.hpp"
#include "base/time.hpp"
#include "engine/matcher.hpp"
#include "link/shm/ring.hpp"
#include "measure.hpp"
#include "runtime/baton.hpp"
#include "runtime/loop_lock.hpp"
#include "wire/codec.hpp"

namespace nexar::bench {

namespace {

constexpr int kBatch = 256;

double median_ns(const std::function<void()>& once) {
    const auto batch = [&] {
        for (int i = 0; i < kBatch; ++i) once();
    };
    return measure({batch}).front().median / kBatch * 1e9;
}

wire::EagerHeader header_of(std::uint64_t number) {
    return wire::EagerHeader{
        {.context = ContextId(1), .sequence = Sequence(number), .tag = Tag(1), .size = 8}};
}

void report_lock_and_time(Report& report) {
    runtime::LoopLock lock;
    report.row("cost_lock_and_unlock", median_ns([&] {
                   lock.lock();
                   keep(&lock);
                   lock.unlock();
               }),
               "ns");
    runtime::Baton baton;
    runtime::Waiter waiter;
    report.row("cost_baton", median_ns([&] {
                   keep(&waiter);
                   static_cast<void>(baton.take(waiter));
                   static_cast<void>(baton.release());
               }),
               "ns");
    report.row("cost_clock", median_ns([] {
                   const TimePoint now = SteadyClock{}.now();
                   keep(&now);
               }),
               "ns");
    Recorder recorder({});
    report.row("cost_record",
               median_ns([&] { recorder.record({.kind = EventKind::mark, .c = 1, .d = 8}); }),
               "ns");
}

void report_frames(Report& report) {
    std::array<std::byte, wire::kMessageHeaderFrameBytes> frame{};
    std::uint64_t number = 0;
    std::size_t size = 0;
    report.row("cost_encode", median_ns([&] {
                   size = wire::encode(header_of(++number), std::span<std::byte>(frame)).value();
                   keep(&frame);
               }),
               "ns");
    report.row("cost_decode", median_ns([&] {
                   const std::span<const std::byte> bytes = std::span(frame).first(size);
                   const auto header = wire::decode_frame_header(bytes).value();
                   const auto body = wire::decode_body<wire::EagerHeader>(
                       header, bytes.subspan(wire::kFrameHeaderBytes));
                   keep(&body);
               }),
               "ns");
    engine::Matcher matcher(2, 1);
    engine::PostedReceive receive;
    receive.pattern = {.source = Rank(1), .tag = Tag(1)};
    report.row("cost_match", median_ns([&] {
                   matcher.add(receive);
                   keep(matcher.take_posted(Rank(1), Tag(1)));
               }),
               "ns");
}

void report_ring(Report& report) {
    constexpr std::size_t kRing = std::size_t{64} << 10U;
    constexpr std::size_t kContent = 48;       // a frame of 40 bytes and a payload of 8
    std::vector<std::byte> memory(2 * kRing);  // a record at the end goes on behind it
    shm::SharedWord taken{0};
    shm::RingWriter writer(memory.data(), kRing, &taken);
    const std::array<std::byte, kContent> content{};
    report.row("cost_ring_write", median_ns([&] {
                   taken.store(writer.written(), std::memory_order_relaxed);
                   if (!writer.has_room(kContent)) return;
                   std::memcpy(writer.content(), content.data(), kContent);
                   writer.commit({.bytes = kContent, .kind = 1});
               }),
               "ns");
    std::atomic<std::uint32_t> sleeps{0};
    report.row("cost_wake_check", median_ns([&] {
                   std::atomic_thread_fence(std::memory_order_seq_cst);
                   const std::uint32_t asleep = sleeps.load(std::memory_order_relaxed);
                   keep(&asleep);
               }),
               "ns");
    const std::vector<std::byte> empty(kRing);
    const shm::RingReader reader(empty.data(), kRing);
    report.row("cost_poll", median_ns([&] {
                   const bool arrived = reader.arrived();
                   keep(&arrived);
               }),
               "ns");
}

/// Two nodes that share memory; this thread acts for both.
class TwoNodes {
public:
    void report(Report& report) {
        // Messages that wait until they are received, and receives that find them.
        constexpr std::size_t kMessages = 256;
        const auto send = [&] { a_.send(std::span(&one_, 1), 1, 1).wait(); };
        const auto receive = [&] { b_.recv(std::span(&other_, 1), 0, 1).wait(); };
        SteadyClock clock;
        std::vector<double> sends;
        std::vector<double> receives;
        for (int i = 0; i < 200; ++i) {
            const TimePoint begin = clock.now();
            for (std::size_t n = 0; n < kMessages; ++n) send();
            const TimePoint middle = clock.now();
            for (std::size_t n = 0; n < kMessages; ++n) receive();
            sends.push_back(static_cast<double>((middle - begin).count()) / kMessages);
            receives.push_back(static_cast<double>((clock.now() - middle).count()) / kMessages);
        }
        report.row("message_send", middle_of(sends), "ns");
        report.row("message_receive_of_arrived", middle_of(receives), "ns");
        report.row("message_receive_send_wait", median_ns([&] {
                       auto expected = b_.recv(std::span(&other_, 1), 0, 1);
                       send();
                       expected.wait();
                   }),
                   "ns");
        report.row("barrier_of_both", median_ns([&] {
                       auto first = a_.barrier();
                       b_.barrier().wait();
                       first.wait();
                   }),
                   "ns");
        report.row("all_reduce_of_both", median_ns([&] {
                       auto first = a_.all_reduce(std::span(&one_, 1), std::span(&sum_a_, 1), sum);
                       b_.all_reduce(std::span(&other_, 1), std::span(&sum_b_, 1), sum).wait();
                       first.wait();
                   }),
                   "ns");
    }

private:
    static double middle_of(std::vector<double>& values) {
        std::ranges::sort(values);
        return values[values.size() / 2];
    }

    std::vector<Node> nodes_ = local_cluster(2, {.link = "shm"});
    Communicator a_ = nodes_[0].world();
    Communicator b_ = nodes_[1].world();
    double one_ = 1;
    double other_ = 2;
    double sum_a_ = 0;
    double sum_b_ = 0;
};

}  // namespace

void report_operation_cost(Report& report) {
    report_lock_and_time(report);
    report_frames(report);
    report_ring(report);
    TwoNodes().report(report);
}

}  // namespace nexar::bench

// Each rank is a process with a mailbox in shared memory. In round k of a barrier rank i writes to
// the mailbox of rank i + 2^k and waits for that of rank i - 2^k (dissemination), so that no rank
// returns before all have come.

#include "progress_crowd.hpp"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "runtime/progress.hpp"

namespace nexar::bench {
namespace {

using runtime::Completion;
using runtime::Progress;

constexpr std::size_t kMostRanks = 64;
constexpr std::size_t kMostRounds = 6;

struct alignas(128) Mailbox {
    std::array<std::atomic<std::uint64_t>, kMostRounds> arrived{};
    std::atomic<bool> asleep{false};
    int event = -1;
};

struct Shared {
    std::array<Mailbox, kMostRanks> mailboxes{};
    std::atomic<std::uint64_t> last{0};  // the last barrier, once rank 0 has decided
    std::atomic<double> microseconds{0};
};

// What shared memory does: wakes the receiver only if it sleeps.
void deliver(Mailbox& to, std::size_t round, std::uint64_t barrier) {
    to.arrived[round].store(barrier, std::memory_order_seq_cst);
    if (!to.asleep.load(std::memory_order_seq_cst)) return;
    const std::uint64_t one = 1;
    NEXAR_ASSERT(::write(to.event, &one, sizeof one) == sizeof one);
}

class MailboxCarrier final : public port::Carrier {
public:
    explicit MailboxCarrier(Mailbox& mailbox) : mailbox_(mailbox) {}

    bool has(std::size_t round, std::uint64_t barrier) const noexcept {
        return mailbox_.arrived[round].load(std::memory_order_seq_cst) >= barrier;
    }
    int descriptor() const noexcept override { return mailbox_.event; }
    bool wants_write() const noexcept override { return false; }
    bool on_ready(TimePoint /*now*/) override { return false; }
    void flush(TimePoint /*now*/) override {}
    std::optional<TimePoint> next_deadline() const override { return std::nullopt; }
    std::optional<port::LinkEvent> poll_event() override { return std::nullopt; }
    void forget(port::LinkId /*link*/) override {}
    void wake_up() noexcept override {
        mailbox_.asleep.store(false, std::memory_order_relaxed);
        std::uint64_t drained = 0;
        static_cast<void>(::read(mailbox_.event, &drained, sizeof drained));
    }
    bool fall_asleep() noexcept override {
        mailbox_.asleep.store(true, std::memory_order_seq_cst);
        return true;
    }

private:
    Mailbox& mailbox_;
};

class Rank final : public runtime::Driven {
public:
    Rank(Mailbox& mailbox, Progress& progress) : carrier_(mailbox), progress_(progress) {
        progress_.add(*this).value();
    }
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;
    ~Rank() override { progress_.remove(*this); }

    void wait(std::size_t round, std::uint64_t barrier) {
        Completion completion;
        {
            const Progress::Guard guard(progress_);
            round_ = round;
            barrier_ = barrier;
            pending_ = &completion;
        }
        progress_.wait(completion);
    }

    std::span<port::Carrier* const> carriers() const noexcept override { return carriers_; }
    bool turn(TimePoint /*now*/) noexcept override {
        if (pending_ == nullptr || !carrier_.has(round_, barrier_)) return false;
        progress_.complete(*std::exchange(pending_, nullptr));
        return true;
    }
    std::optional<TimePoint> next_deadline() const noexcept override { return std::nullopt; }
    bool fall_asleep() noexcept override {
        Driven::fall_asleep();
        return pending_ == nullptr || !carrier_.has(round_, barrier_);
    }

private:
    MailboxCarrier carrier_;
    std::array<port::Carrier*, 1> carriers_{&carrier_};
    Progress& progress_;
    std::size_t round_ = 0;
    std::uint64_t barrier_ = 0;
    Completion* pending_ = nullptr;
};

void wait_plainly(const Mailbox& mailbox, std::size_t round, std::uint64_t barrier, bool yields) {
    while (mailbox.arrived[round].load(std::memory_order_acquire) < barrier) {
        if (yields) ::sched_yield();
    }
}

// The mean time of a barrier in the fastest of several windows: the others were disturbed by other
// programs.
class Windows {
public:
    explicit Windows(std::chrono::nanoseconds time) : end_(Clock::now() + time) {}

    /// Returns whether the time is over. Call at the beginning of each barrier.
    bool over(std::uint64_t barrier) {
        const auto now = Clock::now();
        if (now - begin_ < kWindow) return false;
        const std::chrono::duration<double, std::micro> took = now - begin_;
        if (first_ != 0) {
            fastest_ = std::min(fastest_, took.count() / static_cast<double>(barrier - first_));
        }
        begin_ = now;
        first_ = barrier;
        return now > end_;
    }
    double fastest() const noexcept { return fastest_; }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr auto kWindow = std::chrono::milliseconds(10);

    Clock::time_point end_;
    Clock::time_point begin_{};
    std::uint64_t first_ = 0;
    double fastest_ = 1e9;
};

void run_rank(Shared& shared, const BarrierOptions& options, int me) {
    const auto size = static_cast<std::size_t>(options.ranks);
    const auto self = static_cast<std::size_t>(me);
    const auto progress = std::move(Progress::make({.spin = options.spin})).value();
    progress->set_local_ranks(size);
    Rank rank(shared.mailboxes[self], *progress);
    Windows windows(options.time);
    std::uint64_t barrier = 0;
    do {
        ++barrier;
        if (barrier % size == self && options.compute.count() > 0) {
            const auto end = std::chrono::steady_clock::now() + options.compute;
            while (std::chrono::steady_clock::now() < end) {
            }
        }
        // Before rank 0 enters that barrier, so that all know when they leave it.
        if (me == 0 && windows.over(barrier)) {
            shared.last.store(barrier, std::memory_order_release);
        }
        for (std::size_t round = 0; (std::size_t{1} << round) < size; ++round) {
            deliver(shared.mailboxes[(self + (std::size_t{1} << round)) % size], round, barrier);
            if (options.wait == BarrierWait::progress) {
                rank.wait(round, barrier);
            } else {
                wait_plainly(shared.mailboxes[self], round, barrier,
                             options.wait == BarrierWait::yield);
            }
        }
    } while (shared.last.load(std::memory_order_acquire) != barrier);
    if (me == 0) shared.microseconds.store(windows.fastest());
}

}  // namespace

double measure_barrier(const BarrierOptions& options) {
    void* const memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    NEXAR_ASSERT(memory != MAP_FAILED);
    auto* const shared = new (memory) Shared;
    for (Mailbox& one : shared->mailboxes) one.event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    for (int rank = 0; rank < options.ranks; ++rank) {
        if (::fork() != 0) continue;
        run_rank(*shared, options, rank);
        std::_Exit(0);
    }
    while (::wait(nullptr) > 0) {
    }
    for (const Mailbox& one : shared->mailboxes) ::close(one.event);
    const double result = shared->microseconds.load();
    ::munmap(memory, sizeof(Shared));
    return result;
}

}  // namespace nexar::bench

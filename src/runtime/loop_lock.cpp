#include "runtime/loop_lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nexar::runtime {

void LoopLock::lock() noexcept {
    if (try_lock()) return;
    // A thread that may have slept locks with kSleepers, because others may still sleep.
    std::uint32_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
        if ((word & kLocked) == 0) {
            if (word_.compare_exchange_weak(word, word | kLocked | kSleepers,
                                            std::memory_order_acq_rel, std::memory_order_relaxed)) {
                return;
            }
            continue;
        }
        const std::uint32_t marked = word | kSleepers;
        if (word != marked && !word_.compare_exchange_weak(word, marked, std::memory_order_acq_rel,
                                                           std::memory_order_relaxed)) {
            continue;
        }
        ::syscall(SYS_futex, &word_, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, marked, nullptr, nullptr, 0);
        word = word_.load(std::memory_order_relaxed);
    }
}

void LoopLock::wake_one() noexcept {
    ::syscall(SYS_futex, &word_, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
}

}  // namespace nexar::runtime

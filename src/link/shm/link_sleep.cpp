#include <algorithm>
#include <atomic>
#include <utility>

#include "link/shm/link.hpp"

// When a peer's driver sleeps, the bell wakes it: one byte over the socket. Carrier::fall_asleep()
// has the other half of the protocol, and tests/unit/link/shm/interleaving_test.cpp explores it.
namespace nexar::shm {

void Link::publish_taken() noexcept {
    published_ = reader_.read();
    own_.control().taken.store(published_, std::memory_order_release);
    to_tell_ |= kWantsRoom;
}

void Link::ring_if_asleep() noexcept {
    if (to_tell_ == 0) return;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    ring_after_fence(std::exchange(to_tell_, 0));
}

void Link::ring_after_fence(std::uint32_t told) noexcept {
    const std::uint32_t sleep = theirs_.control().sleep.load(std::memory_order_relaxed);
    // The count in the word changes whenever the peer falls asleep: one bell each time is enough.
    if ((sleep & told) == 0 || sleep == rung_) return;
    rung_ = sleep;
    ring_bell(socket_.number());
}

void Link::nudge() noexcept {
    if (is_up()) ring_after_fence(kWantsArrivals);
}

void Link::set_sleep(bool asleep) noexcept {
    std::uint32_t word = 0;
    if (asleep) {
        if (reader_.read() != published_) publish_taken();
        sleep_count_ += kSleepStep;
        word = sleep_count_ | kWantsArrivals | (waits_for_ != 0 ? kWantsRoom : 0);
    }
    own_.control().sleep.store(word, std::memory_order_relaxed);
}

bool Link::reader_advanced() noexcept {
    writer_.look();
    const std::uint64_t progress = writer_.read() - waits_since_;
    return progress >= waits_for_ || (progress != 0 && writer_.read() == writer_.written()) ||
           writer_.broken();
}

void Link::wait_for_reader(std::uint64_t bytes) noexcept {
    waits_for_ = waits_for_ == 0 ? bytes : std::min(waits_for_, bytes);
}

bool Link::something_to_do() noexcept {
    return reader_.arrived() || (waits_for_ != 0 && reader_advanced());
}

}  // namespace nexar::shm

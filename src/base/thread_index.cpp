#include "base/thread_index.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace nexar::detail {

thread_local constinit unsigned this_thread_index = kNoThreadIndex;

namespace {

constexpr unsigned kBits = 64;

// One bit per number, set while a live thread holds it.
constinit std::array<std::atomic<std::uint64_t>, kThreadIndexes / kBits> taken{};

unsigned take_lowest() noexcept {
    for (unsigned word = 0; word < taken.size(); ++word) {
        std::uint64_t bits = taken[word].load(std::memory_order_relaxed);
        while (~bits != 0) {
            const auto free = static_cast<unsigned>(std::countr_one(bits));
            // Acquire pairs with the release in give_back(): we see everything that the previous
            // holder wrote to memory indexed by this number.
            if (taken[word].compare_exchange_weak(bits, bits | std::uint64_t{1} << free,
                                                  std::memory_order_acquire,
                                                  std::memory_order_relaxed)) {
                return word * kBits + free;
            }
        }
    }
    return kThreadIndexes;
}

void give_back(unsigned index) noexcept {
    taken[index / kBits].fetch_and(~(std::uint64_t{1} << index % kBits), std::memory_order_release);
}

// Lives as long as its thread.
class Lease {
public:
    Lease() noexcept : index_(take_lowest()) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
        this_thread_index = kThreadIndexes;
        if (index_ < kThreadIndexes) give_back(index_);
    }

    unsigned index() const noexcept { return index_; }

private:
    unsigned index_;
};

}  // namespace

unsigned take_thread_index() noexcept {
    thread_local const Lease lease;
    this_thread_index = lease.index();
    return this_thread_index;
}

}  // namespace nexar::detail

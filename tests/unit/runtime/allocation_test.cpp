#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <nexar/nexar.hpp>

namespace {

std::atomic<std::uint64_t> allocations = 0;

void* counted(std::size_t bytes) {
    ++allocations;
    if (void* memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) {
    return counted(bytes);
}
void* operator new[](std::size_t bytes) {
    return counted(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
    ++allocations;
    return std::malloc(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
    ++allocations;
    return std::malloc(bytes);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t /*bytes*/) noexcept {
    std::free(memory);
}

namespace nexar {
namespace {

// Both nodes run in this process, so the count covers both sides. It does not see what ngtcp2
// allocates with malloc.
TEST(Allocation, eager_messages_allocate_nothing_in_steady_state) {
    auto nodes = local_cluster(2);
    Communicator a = nodes[0].world();
    Communicator b = nodes[1].world();
    std::array<std::uint64_t, 4> value{};
    const auto exchange = [&](int rounds, bool expected) {
        for (int i = 0; i < rounds; ++i) {
            Work<Status> receive;
            if (expected) receive = b.recv(std::span(value), 0, 1);
            a.send(std::span(value), 1, 1).wait();
            if (!expected) {
                b.probe(0, 1).wait();
                receive = b.recv(std::span(value), 0, 1);
            }
            receive.wait();
        }
    };
    constexpr int kRounds = 4000;
    exchange(kRounds, true);
    exchange(kRounds, false);
    const std::uint64_t before = allocations;
    exchange(kRounds, true);
    exchange(kRounds, false);
    const std::uint64_t taken = allocations - before;
    // One frame returns the credit of thousands of messages. Only such frames and growing queues of
    // the library may allocate.
    EXPECT_LT(taken, kRounds / 20) << "in " << 2 * kRounds << " messages";
}

}  // namespace
}  // namespace nexar

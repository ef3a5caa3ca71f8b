// Two threads on one ring. Both use the same mapping, because ThreadSanitizer knows memory by its
// address.

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "base/random.hpp"
#include "link/shm/memory.hpp"
#include "link/shm/ring.hpp"

namespace nexar::shm {
namespace {

constexpr std::size_t kRing = std::size_t{64} * 1024;
constexpr std::uint64_t kRecords = 200'000;

std::size_t size_of(std::uint64_t number) {
    const std::uint64_t mixed = SplitMix64(number).next();
    return 8 + static_cast<std::size_t>(mixed % (mixed % 16 == 0 ? 4000 : 64));
}

TEST(shm_ring_threads, one_writes_while_another_reads) {
    const RingMemory memory = RingMemory::make(kRing).value();
    SharedWord taken{0};
    std::thread writing([&] {
        RingWriter writer(memory.ring(), kRing, &taken);
        for (std::uint64_t i = 0; i < kRecords; ++i) {
            const std::size_t bytes = size_of(i);
            while (!writer.has_room(bytes)) std::this_thread::yield();
            std::memset(writer.content(), static_cast<int>(i & 0xffU), bytes);
            std::memcpy(writer.content(), &i, sizeof i);
            writer.commit({.bytes = static_cast<std::uint32_t>(bytes), .kind = 1});
        }
    });
    RingReader reader(memory.ring(), kRing);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < kRecords; ++i) {
        while (!reader.arrived()) std::this_thread::yield();
        const RecordHead head = reader.head();
        const port::ConstBytes content = reader.content(head);
        std::uint64_t number = 0;
        std::memcpy(&number, content.data(), sizeof number);
        if (head.bytes != size_of(i) || number != i) ++wrong;
        for (const std::byte byte : content.subspan(8)) {
            if (byte != static_cast<std::byte>(i)) ++wrong;
        }
        reader.skip(head);
        if (i % 3 == 0 || reader.read() - taken.load() > kRing / 4) {
            taken.store(reader.read(), std::memory_order_release);
        }
        if (i % 64 == 0) taken.store(reader.read(), std::memory_order_release);
        if (!reader.arrived()) taken.store(reader.read(), std::memory_order_release);
    }
    writing.join();
    EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace nexar::shm

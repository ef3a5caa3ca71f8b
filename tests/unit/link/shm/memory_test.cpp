#include "link/shm/memory.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace nexar::shm {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMapped = std::size_t{64} * 1024;

TEST(shm_memory, a_ring_is_mapped_twice_in_a_row) {
    const auto memory = RingMemory::make(kMapped).value();
    memory.ring()[5] = std::byte{42};
    EXPECT_EQ(memory.ring()[kMapped + 5], std::byte{42});
    memory.ring()[kMapped] = std::byte{43};
    EXPECT_EQ(memory.ring()[0], std::byte{43});
}

TEST(shm_memory, the_peer_sees_what_the_owner_writes) {
    const auto own = RingMemory::make(kMapped).value();
    const auto theirs = RingMemory::map_peer(Descriptor(::dup(own.descriptor())), kMapped).value();
    own.ring()[kMapped - 1] = std::byte{7};
    own.control().taken.store(99, std::memory_order_release);
    EXPECT_EQ(theirs.ring()[2 * kMapped - 1], std::byte{7});
    EXPECT_EQ(theirs.control().taken.load(std::memory_order_acquire), 99U);
}

TEST(shm_memory, the_peer_cannot_map_it_writable_or_write_it) {
    const auto own = RingMemory::make(kMapped).value();
    const std::size_t bytes = page_bytes() + kMapped;
    EXPECT_FALSE(map_memory(own.descriptor(), bytes, true).has_value());
    const auto reading = map_memory(own.descriptor(), bytes, false).value();
    EXPECT_NE(::mprotect(reading.data(), bytes, PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(::pwrite(own.descriptor(), "x", 1, 0), -1);
    EXPECT_EQ(errno, EPERM);
    EXPECT_NE(::fallocate(own.descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                          static_cast<off_t>(bytes)),
              0);
    const std::string path = "/proc/self/fd/" + std::to_string(own.descriptor());
    const Descriptor again(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_FALSE(again && map_memory(again.number(), bytes, true).has_value());
}

TEST(shm_memory, nobody_can_change_its_size_or_its_seals) {
    const auto own = RingMemory::make(kMapped).value();
    EXPECT_NE(::ftruncate(own.descriptor(), 0), 0);
    EXPECT_NE(::ftruncate(own.descriptor(), static_cast<off_t>(4 * kMapped)), 0);
    EXPECT_NE(::fcntl(own.descriptor(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(shm_memory, memory_without_seals_is_refused) {
    const auto memory = make_memory(page_bytes() + kMapped).value();
    const auto mapped = RingMemory::map_peer(memory, kMapped);
    ASSERT_FALSE(mapped.has_value());
    EXPECT_EQ(mapped.error().code(), Errc::protocol_violation);
    EXPECT_THAT(mapped.error().cause(), HasSubstr("not sealed"));
}

TEST(shm_memory, memory_of_another_size_is_refused) {
    const auto own = RingMemory::make(kMapped).value();
    const Descriptor copy(::dup(own.descriptor()));
    const auto mapped = RingMemory::map_peer(copy, 2 * kMapped);
    ASSERT_FALSE(mapped.has_value());
    EXPECT_THAT(mapped.error().cause(), HasSubstr("announced size"));
    for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{kMapped + 1},
                                     std::uint64_t{1} << 40U, ~std::uint64_t{0}}) {
        EXPECT_FALSE(RingMemory::map_peer(copy, size).has_value());
    }
}

TEST(shm_memory, a_file_or_a_pipe_is_refused) {
    const Descriptor file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    EXPECT_FALSE(RingMemory::map_peer(file, kMapped).has_value());
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const Descriptor in(ends[0]);
    const Descriptor out(ends[1]);
    EXPECT_FALSE(RingMemory::map_peer(in, kMapped).has_value());
}

TEST(shm_memory, it_has_no_name_in_the_file_system) {
    const auto own = RingMemory::make(kMapped).value();
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
        EXPECT_THAT(entry.path().string(), ::testing::Not(HasSubstr("nexar")));
    }
}

}  // namespace
}  // namespace nexar::shm

#include "link/shm/memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <new>
#include <string_view>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "link/shm/system_failure.hpp"

namespace nexar::shm {

namespace {

#ifdef MFD_NOEXEC_SEAL
constexpr unsigned kNeverExecutable = MFD_NOEXEC_SEAL;
#else
constexpr unsigned kNeverExecutable = 0x0008;  // Linux 6.3
#endif
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

constexpr std::uint64_t kMinRingBytes = std::uint64_t{64} * 1024;
constexpr std::uint64_t kMaxRingBytes = std::uint64_t{64} * 1024 * 1024;

Error unusable(std::string_view why) {
    return {Errc::protocol_violation,
            fmt::format("the memory that the peer offered {}, so this node cannot read it safely",
                        why)};
}

}  // namespace

Mapping::~Mapping() {
    if (data_ != nullptr) ::munmap(data_, size_);
}

std::size_t page_bytes() noexcept {
    static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

std::size_t whole_pages(std::size_t bytes) noexcept {
    return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

Result<Descriptor> make_memory(std::size_t bytes) {
    constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    Descriptor memory(::memfd_create("nexar", kFlags | kNeverExecutable));
    // Older kernels do not know the flag.
    if (!memory && errno == EINVAL) memory = Descriptor(::memfd_create("nexar", kFlags));
    if (!memory) return system_failure("create shared memory");
    if (::ftruncate(memory.number(), static_cast<off_t>(bytes)) != 0) {
        return system_failure(fmt::format("set the size of shared memory to {} bytes", bytes));
    }
    return memory;
}

Result<void> seal(int memory) {
    if (::fcntl(memory, F_ADD_SEALS, kSeals) != 0) return system_failure("seal shared memory");
    return {};
}

Result<void> check_sealed(int memory, std::uint64_t bytes) {
    const int seals = ::fcntl(memory, F_GET_SEALS);
    if (seals < 0) return unusable("is not a memfd");
    if ((seals & kSeals) != kSeals) return unusable("is not sealed");
    // Huge pages also have seals, but reading a page that is not reserved would kill this process.
    struct statfs system{};
    if (::fstatfs(memory, &system) != 0 || system.f_type != TMPFS_MAGIC) {
        return unusable("does not consist of ordinary pages");
    }
    struct stat status{};
    if (::fstat(memory, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < 0 ||
        static_cast<std::uint64_t>(status.st_size) != bytes) {
        return unusable("does not have the announced size");
    }
    return {};
}

Result<Mapping> map_memory(int memory, std::size_t bytes, bool writable) {
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* address = ::mmap(nullptr, bytes, protection, MAP_SHARED, memory, 0);
    if (address == MAP_FAILED) return system_failure("map shared memory");
    return Mapping(static_cast<std::byte*>(address), bytes);
}

bool valid_ring_size(std::uint64_t bytes) noexcept {
    return std::has_single_bit(bytes) && bytes >= kMinRingBytes && bytes <= kMaxRingBytes &&
           bytes % page_bytes() == 0;
}

Result<RingMemory> RingMemory::map(int memory, std::size_t ring_bytes, bool writable) {
    const std::size_t page = page_bytes();
    const std::size_t whole = page + 2 * ring_bytes;
    void* address = ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) return system_failure("reserve addresses for shared memory");
    RingMemory made;
    made.mapping_ = Mapping(static_cast<std::byte*>(address), whole);
    made.ring_bytes_ = ring_bytes;
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    std::byte* const again = made.mapping_.data() + page + ring_bytes;
    if (::mmap(address, page + ring_bytes, protection, MAP_SHARED | MAP_FIXED, memory, 0) ==
            MAP_FAILED ||
        ::mmap(again, ring_bytes, protection, MAP_SHARED | MAP_FIXED, memory,
               static_cast<off_t>(page)) == MAP_FAILED) {
        return system_failure("map shared memory");
    }
    return made;
}

Result<RingMemory> RingMemory::make(std::size_t ring_bytes) {
    NEXAR_ASSERT(valid_ring_size(ring_bytes));
    NEXAR_TRY_VALUE(memory, make_memory(page_bytes() + ring_bytes));
    NEXAR_TRY_VALUE(made, map(memory.number(), ring_bytes, true));
    NEXAR_TRY(seal(memory.number()));
    new (made.mapping_.data()) Control();
    made.memory_ = std::move(memory);
    return std::move(made);
}

Result<RingMemory> RingMemory::map_peer(const Descriptor& memory, std::uint64_t ring_bytes) {
    if (!valid_ring_size(ring_bytes)) return unusable("has a ring of an invalid size");
    NEXAR_TRY(check_sealed(memory.number(), page_bytes() + ring_bytes));
    return map(memory.number(), static_cast<std::size_t>(ring_bytes), false);
}

}  // namespace nexar::shm

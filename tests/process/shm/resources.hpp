#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What a process holds, as the kernel and the allocator report it.
namespace nexar::testing {

struct Resources {
    std::size_t descriptors = 0;
    std::size_t shared_pieces = 0;  // memory of shared-memory links that is mapped here
    std::size_t mappings = 0;
    std::size_t heap_bytes = 0;  // allocated and not freed
    std::size_t resident_bytes = 0;
};

/// Those of this process, after it has returned free memory to the kernel.
Resources resources();

/// A memfd of nexar that is mapped by this process: a ring, or a segment of a communicator.
struct SharedPiece {
    std::uint64_t inode = 0;
    bool own = false;  // this process writes it
    std::size_t bytes = 0;
    std::size_t resident_bytes = 0;  // pages that this process has touched
};
std::vector<SharedPiece> shared_pieces();

/// A value of /proc/self/smaps_rollup, such as "Pss", in bytes.
std::size_t rollup(const std::string& name);

/// The abstract Unix sockets on which a process listens for shared-memory links.
std::vector<std::string> abstract_sockets_of(pid_t process);
bool abstract_socket_exists(const std::string& name);

/// The names in a directory that contain "nexar".
std::vector<std::string> nexar_files_in(const std::string& directory);

}  // namespace nexar::testing

#pragma once

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <string>

namespace nexar::chaos {

/// What this process holds now.
struct Resources {
    std::size_t resident_kb = 0;
    std::size_t heap_bytes = 0;  // in use; 0 under sanitizers, which replace malloc()
    std::size_t mappings = 0;
    std::size_t descriptors = 0;
};

inline Resources resources_of_this_process() {
    Resources held;
    std::ifstream statm("/proc/self/statm");
    std::size_t all = 0;
    std::size_t resident = 0;
    statm >> all >> resident;
    held.resident_kb = resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
    const auto heap = ::mallinfo2();
    held.heap_bytes = heap.uordblks + heap.hblkhd;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) ++held.mappings;
    if (DIR* const folder = ::opendir("/proc/self/fd")) {
        while (::readdir(folder) != nullptr) ++held.descriptors;
        ::closedir(folder);
        held.descriptors -= 3;  // ".", ".." and the folder itself
    }
    return held;
}

}  // namespace nexar::chaos

#pragma once

#include <dirent.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

namespace nexar::testing {

/// What this process has of the operating system.
struct OpenResources {
    std::size_t descriptors = 0;
    std::size_t memory_mappings = 0;  // of nexar's shared memory

    static OpenResources count() {
        OpenResources found;
        for ([[maybe_unused]] const auto& entry :
             std::filesystem::directory_iterator("/proc/self/fd")) {
            ++found.descriptors;
        }
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);) {
            if (line.find("memfd:nexar") != std::string::npos) ++found.memory_mappings;
        }
        return found;
    }
    friend bool operator==(const OpenResources&, const OpenResources&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const OpenResources& found) {
    return out << found.descriptors << " descriptors, " << found.memory_mappings << " mappings";
}

}  // namespace nexar::testing

#include "process/shm/resources.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <system_error>

#include "process/p2p/member.hpp"

namespace nexar::testing {

namespace {

constexpr std::string_view kMemoryName = "/memfd:nexar";
constexpr std::string_view kSocketPrefix = "@nexar-";

/// A line of /proc/self/smaps that begins a mapping.
struct MappingLine {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t inode = 0;
    bool writable = false;
    bool shared_memory = false;
};

std::optional<MappingLine> mapping_of(const std::string& line) {
    std::istringstream text(line);
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    char dash = 0;
    std::string access;
    std::string device;
    std::string path;
    MappingLine found;
    if (!(text >> std::hex >> begin >> dash >> end >> access >> found.offset) || dash != '-')
        return {};
    if (!(text >> device >> std::dec >> found.inode)) return {};
    std::getline(text >> std::ws, path);
    found.bytes = end - begin;
    found.writable = access.find('w') != std::string::npos;
    found.shared_memory = path.starts_with(kMemoryName);
    return found;
}

/// Entries of /proc/net/unix: the name of each socket that has one, by inode.
std::map<std::uint64_t, std::string> unix_sockets() {
    std::map<std::uint64_t, std::string> all;
    std::ifstream file("/proc/net/unix");
    std::string line;
    std::getline(file, line);  // the titles
    while (std::getline(file, line)) {
        std::istringstream text(line);
        std::string ignored;
        std::uint64_t inode = 0;
        std::string name;
        for (int i = 0; i < 6; ++i) text >> ignored;
        if (text >> inode >> name) all[inode] = name;
    }
    return all;
}

}  // namespace

Resources resources() {
    ::malloc_trim(0);
    Resources found;
    const std::filesystem::directory_iterator descriptors("/proc/self/fd");
    found.descriptors = static_cast<std::size_t>(std::distance(begin(descriptors), {})) - 1;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line); ++found.mappings) {
        if (line.find(kMemoryName) != std::string::npos) ++found.shared_pieces;
    }
    const struct mallinfo2 heap = ::mallinfo2();
    found.heap_bytes = heap.uordblks + heap.hblkhd;
    found.resident_bytes = resident_bytes();
    return found;
}

std::vector<SharedPiece> shared_pieces() {
    std::map<std::uint64_t, SharedPiece> pieces;
    SharedPiece* last = nullptr;
    std::ifstream file("/proc/self/smaps");
    for (std::string line; std::getline(file, line);) {
        if (const auto mapping = mapping_of(line)) {
            last = mapping->shared_memory ? &pieces[mapping->inode] : nullptr;
            if (last == nullptr) continue;
            last->inode = mapping->inode;
            last->own = last->own || mapping->writable;
            // A ring is mapped twice in a row.
            last->bytes = std::max<std::size_t>(last->bytes, mapping->offset + mapping->bytes);
            continue;
        }
        std::istringstream text(line);
        std::string name;
        std::size_t kib = 0;
        if (last != nullptr && text >> name >> kib && name == "Rss:") {
            last->resident_bytes = std::max(last->resident_bytes, kib * 1024);
        }
    }
    std::vector<SharedPiece> all;
    for (const auto& [inode, piece] : pieces) all.push_back(piece);
    return all;
}

std::size_t rollup(const std::string& name) {
    std::ifstream file("/proc/self/smaps_rollup");
    for (std::string word; file >> word;) {
        std::size_t kib = 0;
        if (word == name + ":" && file >> kib) return kib * 1024;
    }
    throw Error(Errc::bad_config, "/proc/self/smaps_rollup has no " + name);
}

std::vector<std::string> abstract_sockets_of(pid_t process) {
    const auto all = unix_sockets();
    std::vector<std::string> names;
    const std::filesystem::path directory = "/proc/" + std::to_string(process) + "/fd";
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        std::error_code error;
        const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
        constexpr std::string_view kSocket = "socket:[";
        if (error || !target.starts_with(kSocket)) continue;
        const auto found = all.find(std::stoull(target.substr(kSocket.size())));
        if (found != all.end() && found->second.starts_with(kSocketPrefix))
            names.push_back(found->second);
    }
    return names;
}

bool abstract_socket_exists(const std::string& name) {
    return std::ranges::any_of(unix_sockets(),
                               [&](const auto& socket) { return socket.second == name; });
}

std::vector<std::string> nexar_files_in(const std::string& directory) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
        const std::string name = entry.path().filename().string();
        if (name.find("nexar") != std::string::npos) names.push_back(name);
    }
    return names;
}

}  // namespace nexar::testing

#include "link/shm/process_life.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>

namespace nexar::shm {

namespace {

Descriptor open_to_read(const std::string& path) {
    return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

/// The first number in statm is the size of the address space; 0: there is none.
bool has_address_space(const Descriptor& statm) noexcept {
    std::array<char, 2> text{};
    const ssize_t size = ::pread(statm.number(), text.data(), text.size(), 0);
    if (size < 0) return errno != ESRCH;
    return size < 2 || text[0] != '0' || text[1] != ' ';
}

struct CloseDirectory {
    void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

}  // namespace

ProcessLife::ProcessLife(pid_t process)
    : process_(process), statm_(open_to_read("/proc/" + std::to_string(process) + "/statm")) {}

bool ProcessLife::has_ended() const {
    if (!statm_ || has_address_space(statm_)) return false;
    // The first thread may have ended before the others.
    const std::string tasks = "/proc/" + std::to_string(process_) + "/task/";
    const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(tasks.c_str()));
    if (directory == nullptr) return errno == ENOENT;
    while (const dirent* const task = ::readdir(directory.get())) {
        if (task->d_name[0] == '.') continue;
        const Descriptor statm = open_to_read(tasks + task->d_name + "/statm");
        if (statm ? has_address_space(statm) : errno != ENOENT) return false;
    }
    return true;
}

}  // namespace nexar::shm

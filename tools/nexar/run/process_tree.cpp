#include "run/process_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <memory>
#include <string>

#include "base/descriptor.hpp"

namespace nexar::run {

namespace {

struct CloseDirectory {
    void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

pid_t parent_of(const char* pid) {
    const Descriptor file(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number() < 0) return -1;
    std::array<char, 512> text{};
    const ssize_t size = ::read(file.number(), text.data(), text.size());
    if (size <= 0) return -1;
    return parent_in_stat({text.data(), static_cast<std::size_t>(size)});
}

}  // namespace

bool become_subreaper() noexcept {
    return ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

pid_t parent_in_stat(std::string_view stat) noexcept {
    // "12 (na me) S 7 ...": the name may contain any character, even brackets.
    const std::size_t close = stat.rfind(')');
    if (close == std::string_view::npos || stat.size() < close + 5) return -1;
    pid_t parent = -1;
    const char* const begin = stat.data() + close + 4;
    const auto read = std::from_chars(begin, stat.data() + stat.size(), parent);
    return read.ec == std::errc{} ? parent : -1;
}

std::vector<pid_t> children() {
    std::vector<pid_t> found;
    const std::unique_ptr<DIR, CloseDirectory> proc(::opendir("/proc"));
    if (!proc) return found;
    const pid_t self = ::getpid();
    while (const dirent* entry = ::readdir(proc.get())) {
        const std::string_view name = entry->d_name;
        pid_t pid = 0;
        const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (read.ec != std::errc{} || read.ptr != name.data() + name.size()) continue;
        if (parent_of(entry->d_name) == self) found.push_back(pid);
    }
    return found;
}

bool kill_descendants(TimePoint deadline) {
    const SteadyClock clock;
    sigset_t child_ended;
    sigemptyset(&child_ended);
    sigaddset(&child_ended, SIGCHLD);
    while (true) {
        for (const pid_t child : children()) ::kill(child, SIGKILL);
        pid_t reaped = 0;
        do {
            reaped = ::waitpid(-1, nullptr, WNOHANG);
        } while (reaped > 0);
        if (reaped < 0 && errno == ECHILD) return true;
        if (clock.now() >= deadline) return false;
        // Some child was created after the list was read, or is slow to end.
        constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 5'000'000};
        ::sigtimedwait(&child_ended, nullptr, &kPause);
    }
}

}  // namespace nexar::run

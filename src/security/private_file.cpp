#include "security/private_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <thread>
#include <vector>

#include "base/try.hpp"

namespace nexar::security {

namespace {

constexpr mode_t kOthers = 0077;
constexpr std::string_view kUnfinished = ".new";
constexpr std::chrono::seconds kLockTime{10};
constexpr std::chrono::milliseconds kLockPause{5};

Error failed(std::string_view doing, const std::string& path) {
    return {Errc::bad_config, fmt::format("cannot {} {}: {}", doing, path,
                                          std::strerror(errno))};  // NOLINT(concurrency-mt-unsafe)
}

/// Fails unless only we, and the administrator, can read or change it.
Result<void> check_private(const struct stat& status, const std::string& path,
                           std::string_view mode) {
    if (status.st_uid != ::geteuid()) {
        return Error(
            Errc::bad_config,
            fmt::format("{} belongs to another user (uid {}), so nexar does not read secrets "
                        "from it; use another directory, or take it over with chown",
                        path, status.st_uid));
    }
    if ((status.st_mode & kOthers) != 0) {
        return Error(
            Errc::bad_config,
            fmt::format("{} is accessible to others (mode {:04o}), so its secrets may have "
                        "leaked; if they have not, run: chmod {} {}",
                        path, status.st_mode & 07777U, mode, path));
    }
    return {};
}

Result<void> write_all(int descriptor, std::span<const std::byte> content,
                       const std::string& path) {
    while (!content.empty()) {
        const ssize_t written = ::write(descriptor, content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return failed("write", path);
        content = content.subspan(static_cast<std::size_t>(written));
    }
    if (::fsync(descriptor) != 0) return failed("flush to disk", path);
    return {};
}

bool read_all(int descriptor, std::span<std::byte> out) {
    while (!out.empty()) {
        const ssize_t count = ::read(descriptor, out.data(), out.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        out = out.subspan(static_cast<std::size_t>(count));
    }
    return true;
}

}  // namespace

Result<void> make_private_directory(const std::string& path) {
    std::error_code code;
    const auto parent = std::filesystem::path(path).lexically_normal().parent_path();
    if (!parent.empty()) std::filesystem::create_directories(parent, code);
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
        return failed("create directory", path);
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) return failed("inspect", path);
    if (!S_ISDIR(status.st_mode)) {
        return Error(Errc::bad_config,
                     fmt::format("{} is not a directory; use another path", path));
    }
    return check_private(status, path, "0700");
}

Result<std::optional<Secret>> read_private_file(const std::string& path, std::size_t max_bytes) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file && errno == ENOENT) return std::optional<Secret>{};
    if (!file) return failed("read", path);
    struct stat status{};
    if (::fstat(file.number(), &status) != 0) return failed("inspect", path);
    if (!S_ISREG(status.st_mode)) {
        return Error(Errc::bad_config, fmt::format("{} is not a regular file", path));
    }
    NEXAR_TRY(check_private(status, path, "0600"));
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size > max_bytes) {
        return Error(Errc::bad_config,
                     fmt::format("{} has {} bytes; allowed: at most {}", path, size, max_bytes));
    }
    bool whole = false;
    auto content = Secret::filled(
        size, [&](std::span<std::byte> out) { whole = read_all(file.number(), out); });
    if (!whole) return failed("read all of", path);
    return std::optional<Secret>(std::move(content));
}

Result<void> write_private_file(const std::string& path, std::span<const std::byte> content) {
    const std::string fresh = fmt::format("{}.{}{}", path, ::getpid(), kUnfinished);
    ::unlink(fresh.c_str());
    {
        const Descriptor file(
            ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file) return failed("write", fresh);
        if (auto written = write_all(file.number(), content, fresh); !written) {
            ::unlink(fresh.c_str());
            return written;
        }
    }
    if (::rename(fresh.c_str(), path.c_str()) != 0) {
        const Error error = failed("replace", path);
        ::unlink(fresh.c_str());
        return error;
    }
    const std::string parent = std::filesystem::path(path).parent_path().string();
    const Descriptor directory(
        ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
    if (!directory || ::fsync(directory.number()) != 0) return failed("flush to disk", parent);
    return {};
}

void remove_unfinished(const std::string& path) {
    const std::filesystem::path wanted(path);
    const std::string front = wanted.filename().string() + ".";
    std::vector<std::filesystem::path> found;
    std::error_code code;
    for (std::filesystem::directory_iterator at(wanted.parent_path(), code), end;
         !code && at != end; at.increment(code)) {
        const std::string name = at->path().filename().string();
        if (!name.starts_with(front) || !name.ends_with(kUnfinished)) continue;
        if (name.size() <= front.size() + kUnfinished.size()) continue;
        const std::string_view process = std::string_view(name).substr(
            front.size(), name.size() - front.size() - kUnfinished.size());
        const bool ours = std::ranges::all_of(process, [](char c) { return c >= '0' && c <= '9'; });
        if (ours) found.push_back(at->path());
    }
    for (const auto& one : found) ::unlink(one.c_str());
}

Result<std::optional<Descriptor>> lock_file(const std::string& path, bool wait) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return failed("open", path);
    const auto deadline = std::chrono::steady_clock::now() + kLockTime;
    while (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return failed("lock", path);
        if (!wait) return std::optional<Descriptor>{};
        if (std::chrono::steady_clock::now() > deadline) {
            return Error(Errc::timed_out,
                         fmt::format("another process keeps {} locked; `fuser {}` shows which one",
                                     path, path));
        }
        std::this_thread::sleep_for(kLockPause);
    }
    return std::optional<Descriptor>(std::move(file));
}

}  // namespace nexar::security

#include "runtime/config_sources.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/secret.hpp"
#include "base/settings.hpp"
#include "base/try.hpp"

namespace nexar {

namespace {

constexpr std::size_t kFileLimit = std::size_t{1} << 20;

/// Owns a file descriptor.
class OpenFile {
public:
    explicit OpenFile(int descriptor) noexcept : descriptor_(descriptor) {}
    ~OpenFile() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    int descriptor() const noexcept { return descriptor_; }

private:
    int descriptor_;
};

Error unreadable(const ConfigFilePath& file, std::string_view why) {
    return {Errc::bad_config, fmt::format("file {}{}: {}", printable(file.path),
                                          file.required ? " (environment NEXAR_CONFIG)" : "", why)};
}

Error unreadable(const ConfigFilePath& file, int error) {
    return unreadable(file, "cannot be read: " + std::generic_category().message(error));
}

/// Reads the file; fails if it exceeds the limit, even if it has grown since its size was checked.
Result<std::string> read_all(const OpenFile& open_file, const ConfigFilePath& file) {
    std::string text(kFileLimit + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const ssize_t n = ::read(open_file.descriptor(), text.data() + size, text.size() - size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return unreadable(file, errno);
        if (n == 0) break;
        size += static_cast<std::size_t>(n);
    }
    if (size > kFileLimit) return unreadable(file, "is larger than the maximum of 1 MiB");
    text.resize(size);
    return text;
}

struct Contents {
    bool present = false;  // false only where the file may be absent
    std::string text{};
};

Result<Contents> read_file(const ConfigFilePath& file) {
    if (file.path.empty()) {
        return Error(
            Errc::bad_config,
            "environment NEXAR_CONFIG: is empty; set it to the path of a file or unset it");
    }
    // Without O_NONBLOCK, opening a named pipe would block the process.
    const OpenFile open_file(
        ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (open_file.descriptor() < 0) {
        const bool absent = errno == ENOENT || errno == ENOTDIR;
        if (absent && !file.required) return Contents{};
        return unreadable(file, errno);
    }
    struct stat status{};
    if (::fstat(open_file.descriptor(), &status) != 0) return unreadable(file, errno);
    if (!S_ISREG(status.st_mode)) return unreadable(file, "is not a regular file");
    NEXAR_TRY_VALUE(text, read_all(open_file, file));
    return Contents{.present = true, .text = std::move(text)};
}

/// Held by all nexar code that accesses the environment, because join() changes it.
std::mutex& environment_mutex() {
    static std::mutex mutex;
    return mutex;
}

/// The memory of the environment strings that the process was started with; empty if unknown.
/// Strings added later by setenv() or putenv() do not appear in /proc/PID/environ, and may be
/// constants.
struct InitialEnvironment {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};

InitialEnvironment initial_environment() {
    std::ifstream file("/proc/self/stat");
    std::string text;
    std::getline(file, text);
    // The program name is in parentheses and may contain any character. Numbers follow it; proc(5)
    // calls the first of them field 3, and env_start and env_end fields 50 and 51.
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) return {};
    std::istringstream fields(text.substr(name_end + 1));
    std::string skipped;
    for (int field = 3; field < 50; ++field) fields >> skipped;
    InitialEnvironment found;
    fields >> found.begin >> found.end;
    return fields ? found : InitialEnvironment{};
}

}  // namespace

std::vector<ConfigFlag> take_flags(int& argc, char** argv) {
    if (argc <= 1) return {};
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    SplitArguments split = split_arguments(arguments);
    int kept = 1;
    for (const std::size_t i : split.rest) argv[kept++] = argv[i + 1];
    argv[kept] = nullptr;
    argc = kept;
    return std::move(split.flags);
}

std::vector<NamedValue> read_variables(const std::function<bool(std::string_view)>& wanted) {
    if (::getauxval(AT_SECURE) != 0) return {};
    const std::lock_guard lock(environment_mutex());
    std::vector<NamedValue> environment;
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        const std::size_t equals = text.find('=');
        if (equals == std::string_view::npos) continue;
        const std::string_view name = text.substr(0, equals);
        if (!wanted(name)) continue;
        environment.push_back(
            {.name = std::string(name), .value = std::string(text.substr(equals + 1))});
    }
    return environment;
}

void remove_secret_variable(std::string_view name) {
    const std::lock_guard lock(environment_mutex());
    const InitialEnvironment initial = initial_environment();
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        if (!text.starts_with(name) || !text.substr(name.size()).starts_with('=')) continue;
        const auto at = reinterpret_cast<std::uintptr_t>(*variable);
        if (at < initial.begin || at + text.size() >= initial.end) continue;
        const std::size_t front = name.size() + 1;
        wipe(std::as_writable_bytes(std::span(*variable + front, text.size() - front)));
    }
    ::unsetenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe): see the header
}

std::vector<NamedValue> read_environment() {
    return read_variables(
        [](std::string_view name) { return name == "HOME" || name.starts_with("NEXAR_"); });
}

std::vector<ConfigFilePath> config_file_paths(std::span<const NamedValue> environment,
                                              std::string system_file) {
    std::vector<ConfigFilePath> paths;
    if (const std::string* named = find_value(environment, "NEXAR_CONFIG")) {
        paths.push_back({.path = *named, .required = true});
    }
    const std::string* const home = find_value(environment, "HOME");
    if (home != nullptr && home->starts_with('/')) {
        paths.push_back({.path = *home + "/.config/nexar.toml"});
    }
    paths.push_back({.path = std::move(system_file)});
    return paths;
}

Result<std::vector<ConfigFile>> read_config_files(std::span<const ConfigFilePath> paths) {
    std::vector<ConfigFile> files;
    std::vector<std::string> problems;
    for (const ConfigFilePath& path : paths) {
        auto contents = read_file(path);
        if (!contents) {
            problems.push_back(contents.error().cause());
        } else if (contents->present) {
            files.push_back({.path = path.path, .text = std::move(contents->text)});
        }
    }
    if (!problems.empty()) return config_error(problems);
    return files;
}

Result<LoadedConfig> load_config(std::vector<NamedValue> code, std::vector<ConfigFlag> flags) {
    ConfigSources sources;
    sources.code = std::move(code);
    sources.flags = std::move(flags);
    sources.environment = read_environment();
    const std::vector<ConfigFilePath> paths = config_file_paths(sources.environment);
    NEXAR_TRY_VALUE(files, read_config_files(paths));
    sources.files = std::move(files);
    NEXAR_TRY_VALUE(config, Config::resolve(kSettings, sources));
    configure_log(log_options(config));
    for (const std::string& warning : config.warnings()) NEXAR_LOG_WARNING("{}", warning);

    std::vector<SeenConfigFile> seen;
    for (const ConfigFilePath& path : paths) {
        const auto read = std::ranges::find(sources.files, path.path, &ConfigFile::path);
        seen.push_back({.path = path.path, .found = read != sources.files.end()});
    }
    return LoadedConfig{.config = std::move(config), .files = std::move(seen)};
}

}  // namespace nexar

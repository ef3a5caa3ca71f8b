#include "process/running_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "process/program.hpp"

namespace nexar {

namespace {

// Long enough for a loaded machine under a sanitizer; waits normally end much sooner.
constexpr auto kPatience = std::chrono::seconds(60);

std::array<int, 2> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot create a pipe");
    return ends;
}

void close(int& end) {
    if (end >= 0) ::close(std::exchange(end, -1));
}

int count(std::string_view text, std::string_view wanted) {
    int found = 0;
    for (std::size_t at = text.find(wanted); at != std::string_view::npos;
         at = text.find(wanted, at + wanted.size())) {
        ++found;
    }
    return found;
}

std::string file_content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

RunningProgram::RunningProgram(const std::string& path, std::vector<std::string> arguments,
                               std::vector<std::string> environment) {
    auto input = make_pipe();
    auto output = make_pipe();
    auto errors = make_pipe();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors[1], STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);

    arguments.insert(arguments.begin(), path);
    const int failed = ::posix_spawn(&id_, path.c_str(), &actions, &attributes,
                                     pointers(arguments).data(), pointers(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    input_end_ = input[1];
    output_end_ = output[0];
    errors_end_ = errors[0];
    for (const int end : {input[0], output[1], errors[1]}) ::close(end);
    if (failed != 0) throw std::runtime_error("cannot run " + path);
}

RunningProgram::~RunningProgram() {
    if (id_ > 0) {
        ::kill(id_, SIGKILL);
        while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    for (int* end : {&input_end_, &output_end_, &errors_end_}) close(*end);
}

bool RunningProgram::writes(std::string_view text, int times) {
    const SteadyClock clock;
    const TimePoint deadline = clock.now() + kPatience;
    while (count(output_, text) + count(errors_, text) < times) {
        if (clock.now() > deadline || (output_end_ < 0 && errors_end_ < 0)) return false;
        read_some(std::chrono::milliseconds(50));
    }
    // Everything that the program wrote to the other stream before `text`.
    read_some(Duration::zero());
    return true;
}

int RunningProgram::wait() {
    const SteadyClock clock;
    const TimePoint deadline = clock.now() + kPatience;
    while (clock.now() < deadline) {
        int status = 0;
        if (::waitpid(id_, &status, WNOHANG) == id_) {
            id_ = -1;
            // Read its last output; processes that it left behind may still hold the pipes open.
            for (int i = 0; i < 64; ++i) read_some(Duration::zero());
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        read_some(std::chrono::milliseconds(2));
    }
    return -1;
}

void RunningProgram::type(std::string_view text) const {
    if (::write(input_end_, text.data(), text.size()) < 0)
        throw std::runtime_error("the program does not read its input");
}

void RunningProgram::close_input() {
    close(input_end_);
}

void RunningProgram::close_output() {
    close(output_end_);
}

void RunningProgram::send(int signal) const {
    ::kill(id_, signal);
}

void RunningProgram::read_some(Duration within) {
    std::array<pollfd, 2> polled{pollfd{.fd = output_end_, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = errors_end_, .events = POLLIN, .revents = 0}};
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(within).count();
    ::poll(polled.data(), polled.size(), static_cast<int>(milliseconds));
    std::array<char, 65536> bytes{};
    for (const auto& [end, text] :
         {std::pair(&output_end_, &output_), std::pair(&errors_end_, &errors_)}) {
        const auto& ready = polled.at(end == &output_end_ ? 0 : 1);
        if (*end < 0 || ready.revents == 0) continue;
        const ssize_t n = ::read(*end, bytes.data(), bytes.size());
        if (n > 0) text->append(bytes.data(), static_cast<std::size_t>(n));
        if (n == 0) close(*end);
    }
}

std::string name_of_process(pid_t process) {
    std::string name = file_content("/proc/" + std::to_string(process) + "/comm");
    if (name.ends_with('\n')) name.pop_back();
    return name;
}

bool has_variable(pid_t process, const std::string& variable) {
    const std::string environment =
        '\0' + file_content("/proc/" + std::to_string(process) + "/environ");
    return environment.find('\0' + variable + '\0') != std::string::npos;
}

std::vector<pid_t> processes_with(const std::string& variable) {
    std::vector<pid_t> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
        const std::string name = entry.path().filename().string();
        pid_t pid = 0;
        const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (read.ec != std::errc{} || read.ptr != name.data() + name.size()) continue;
        if (has_variable(pid, variable)) found.push_back(pid);
    }
    return found;
}

std::size_t wait_for_processes(const std::string& variable, std::size_t wanted) {
    const SteadyClock clock;
    const TimePoint deadline = clock.now() + kPatience;
    while (true) {
        const std::size_t there = processes_with(variable).size();
        if (there == wanted || clock.now() > deadline) return there;
        std::this_thread::yield();
    }
}

}  // namespace nexar

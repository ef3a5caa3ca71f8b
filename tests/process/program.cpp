#include "process/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace nexar {

namespace {

/// Captures the output of a program. A file, because a pipe would fill up while nobody reads.
class Capture {
public:
    Capture() : file_(std::tmpfile()) {
        if (file_ == nullptr) throw std::runtime_error("cannot create a temporary file");
    }
    ~Capture() { std::fclose(file_); }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    int descriptor() const { return ::fileno(file_); }

    std::string text() const {
        std::string text;
        std::rewind(file_);
        for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) {
            text += static_cast<char>(c);
        }
        return text;
    }

private:
    std::FILE* file_;
};

}  // namespace

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> list;
    list.reserve(texts.size() + 1);
    for (std::string& text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
}

Outcome run_program(const std::string& path, std::vector<std::string> arguments,
                    std::vector<std::string> environment) {
    const Capture output;
    const Capture errors;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output.descriptor(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);

    arguments.insert(arguments.begin(), path);
    pid_t pid = 0;
    const int failed = ::posix_spawn(&pid, path.c_str(), &actions, nullptr,
                                     pointers(arguments).data(), pointers(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error("cannot run " + path);

    int status = 0;
    if (::waitpid(pid, &status, 0) != pid) throw std::runtime_error("cannot wait for " + path);
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .output = output.text(),
            .errors = errors.text()};
}

}  // namespace nexar

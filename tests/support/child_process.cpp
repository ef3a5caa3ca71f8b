#include "support/child_process.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace nexar::testing {

namespace {

constexpr std::size_t kLongestMessage = 4000;

std::array<int, 2> make_line() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::system_error(errno, std::generic_category(), "socketpair");
    }
    return ends;
}

[[noreturn]] void run_child(const std::function<void(Channel&)>& body, Channel channel,
                            pid_t parent) {
    // The child must not outlive a killed test. The parent may already be gone.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(3);
    int code = 0;
    try {
        body(channel);
    } catch (const std::exception& failure) {
        channel.say(std::string("failed: ") + failure.what());
        code = 1;
    }
    std::fflush(nullptr);
    ::_exit(code);
}

}  // namespace

Channel::Channel(Channel&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Channel& Channel::operator=(Channel&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

Channel::~Channel() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void Channel::say(std::string_view message) const {
    message = message.substr(0, kLongestMessage);
    while (::send(descriptor_, message.data(), message.size(), MSG_NOSIGNAL) < 0 &&
           errno == EINTR) {
    }
}

std::optional<std::string> Channel::hear(Duration within) const {
    pollfd polled{.fd = descriptor_, .events = POLLIN, .revents = 0};
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(within).count();
    if (::poll(&polled, 1, static_cast<int>(milliseconds)) <= 0) return {};
    std::string message(kLongestMessage, '\0');
    const auto size = ::recv(descriptor_, message.data(), message.size(), MSG_DONTWAIT);
    if (size <= 0) return {};
    message.resize(static_cast<std::size_t>(size));
    return message;
}

ChildProcess::ChildProcess(const std::function<void(Channel&)>& body) : channel_(-1) {
    auto [ours, theirs] = make_line();
    channel_ = Channel(ours);
    std::fflush(nullptr);  // else both would print what is still buffered
    const pid_t parent = ::getpid();
    id_ = ::fork();
    if (id_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (id_ == 0) {
        channel_ = Channel(-1);
        run_child(body, Channel(theirs), parent);
    }
    ::close(theirs);
}

ChildProcess::~ChildProcess() {
    kill();
}

void ChildProcess::kill() {
    if (id_ < 0) return;
    ::kill(id_, SIGKILL);
    wait();
}

int ChildProcess::wait() {
    if (id_ < 0) return -1;
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::size_t ChildProcess::resident_bytes() const {
    std::ifstream file("/proc/" + std::to_string(id_) + "/statm");
    std::size_t all_pages = 0;
    std::size_t resident_pages = 0;
    if (!(file >> all_pages >> resident_pages))
        throw std::runtime_error("cannot read statm of the child");
    return resident_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace nexar::testing

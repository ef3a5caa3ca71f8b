#include "support/network_namespace.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nexar/error.hpp>

namespace nexar::testing {

namespace {

[[noreturn]] void cannot(const std::string& what) {
    throw Error(Errc::unsupported, what + ": " + std::strerror(errno));
}

}  // namespace

void enter_new_network() {
    if (::unshare(CLONE_NEWNET) != 0) cannot("cannot create a network namespace");
}

void enter_network_of(pid_t id) {
    const std::string path = "/proc/" + std::to_string(id) + "/ns/net";
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) cannot(path);
    const int code = ::setns(descriptor, CLONE_NEWNET);
    ::close(descriptor);
    if (code != 0) cannot(path);
}

void take_host_name(const std::string& name) {
    if (::unshare(CLONE_NEWUTS) != 0 || ::sethostname(name.data(), name.size()) != 0) {
        cannot("cannot set a private host name");
    }
}

void run_command(const std::string& command) {
    if (std::system(command.c_str()) != 0)
        throw Error(Errc::bad_config, "command failed: " + command);
}

bool has_ip_command() {
    return std::system("ip -V >/dev/null 2>&1") == 0;
}

}  // namespace nexar::testing

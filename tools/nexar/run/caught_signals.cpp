#include "run/caught_signals.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace nexar::run {

Result<CaughtSignals> CaughtSignals::make() {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int signal :
         {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT}) {
        struct sigaction before{};
        ::sigaction(signal, nullptr, &before);
        if (before.sa_handler != SIG_IGN) sigaddset(&wanted, signal);
    }
    Descriptor descriptor(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (descriptor.number() < 0) {
        return Error(Errc::unsupported,
                     fmt::format("signalfd: {}", std::generic_category().message(errno)));
    }
    sigaddset(&wanted, SIGCHLD);  // kill_descendants() waits for it
    sigset_t mask;
    ::sigprocmask(SIG_BLOCK, &wanted, &mask);
    ::signal(SIGPIPE, SIG_IGN);  // write() reports a closed pipe
    return CaughtSignals(std::move(descriptor), mask);
}

CaughtSignals::~CaughtSignals() {
    if (descriptor_.number() >= 0) ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> CaughtSignals::take() const noexcept {
    signalfd_siginfo signal{};
    if (::read(descriptor_.number(), &signal, sizeof signal) != ssize_t{sizeof signal}) return {};
    return static_cast<int>(signal.ssi_signo);
}

}  // namespace nexar::run

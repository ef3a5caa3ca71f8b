#include "run/keeper.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "run/keeper_process.hpp"
#include "run/process_tree.hpp"

namespace nexar::run {

namespace {

constexpr auto kKeeperLastWait = std::chrono::seconds(60);

Error keeper_failure(std::string_view what) {
    return {Errc::unsupported, fmt::format("{}: {}", what, std::generic_category().message(errno))};
}

}  // namespace

Result<Keeper> Keeper::start(const KeeperPlan& plan) {
    if (!become_subreaper()) return keeper_failure("prctl(PR_SET_CHILD_SUBREAPER)");
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return keeper_failure("socketpair");
    }
    Descriptor ours(ends[0]);
    Descriptor theirs(ends[1]);
    const pid_t process = ::fork();
    if (process < 0) return keeper_failure("fork");
    if (process == 0) {
        // Or the keeper would never see the line break.
        ::close(ours.number());
        for (const int descriptor : plan.descriptors) ::close(descriptor);
        run_keeper(plan, theirs.number());
    }
    for (const UnitPlan& unit : plan.units) {
        for (const int descriptor : {unit.input, unit.output, unit.errors}) {
            if (descriptor > STDERR_FILENO) ::close(descriptor);
        }
    }
    return Keeper(std::move(ours), process);
}

Keeper::~Keeper() {
    if (line_.number() < 0) return;
    line_ = Descriptor();
    // The keeper ends by itself; kill_descendants() would kill it before it has cleaned up.
    if (!gone_) {
        while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    kill_descendants(SteadyClock().now() + kKeeperLastWait);
}

bool Keeper::send_with_join(const Command& command, std::string_view join) const {
    std::string message(sizeof(Command) + join.size(), '\0');
    std::memcpy(message.data(), &command, sizeof command);
    join.copy(message.data() + sizeof command, join.size());
    const ssize_t sent = ::send(line_.number(), message.data(), message.size(), MSG_NOSIGNAL);
    ::explicit_bzero(message.data(), message.size());
    return sent >= 0;
}

Result<void> Keeper::start_units(std::string_view join) const {
    if (!send_with_join({.kind = Command::Kind::start}, join)) {
        return keeper_failure("cannot tell the keeper process to start the ranks");
    }
    return {};
}

void Keeper::restart_unit(std::size_t unit, std::uint32_t number, std::string_view join) const {
    // If the send fails, the keeper is gone, and the run ends.
    (void)send_with_join({.kind = Command::Kind::restart,
                          .unit = static_cast<std::uint32_t>(unit),
                          .number = number},
                         join);
}

void Keeper::give(const Order& order) const noexcept {
    Command command{.kind = Command::Kind::signal_units,
                    .signal = order.signal,
                    .unit = static_cast<std::uint32_t>(order.unit)};
    if (order.kind == Order::Kind::kill_unit) command.kind = Command::Kind::kill_unit;
    if (order.kind == Order::Kind::signal_strays) command.kind = Command::Kind::signal_strays;
    if (order.kind == Order::Kind::kill_all) command.kind = Command::Kind::kill_all;
    // If the send fails, the keeper is gone or has a backlog of hundreds of signals.
    (void)::send(line_.number(), &command, sizeof command, MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::optional<Report> Keeper::take_report() noexcept {
    Report report;
    while (true) {
        const ssize_t size = ::recv(line_.number(), &report, sizeof report, MSG_DONTWAIT);
        if (size == ssize_t{sizeof report}) return report;
        if (size < 0 && errno == EINTR) continue;
        if (size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) gone_ = true;
        return std::nullopt;
    }
}

}  // namespace nexar::run

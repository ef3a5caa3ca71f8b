#include "control.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nexar/error.hpp>

namespace nexar::bench {

namespace {
constexpr std::size_t kLongestFailure = 1024;
}

void fail_system(std::string_view doing) {
    throw Error(Errc::bad_config, fmt::format("cannot {}: {}", doing, std::strerror(errno)));
}

std::pair<Control, Control> Control::make_pair() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        fail_system("create the channel between the two processes");
    }
    return {Control(ends[0]), Control(ends[1])};
}

Control::~Control() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void Control::send_bytes(Kind kind, std::span<const std::byte> bytes) {
    std::array<iovec, 2> pieces{
        {{.iov_base = &kind, .iov_len = sizeof kind},
         {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()}}};
    msghdr header{};
    header.msg_iov = pieces.data();
    header.msg_iovlen = pieces.size();
    if (sendmsg(descriptor_, &header, MSG_NOSIGNAL) < 0) {
        throw Error(Errc::link_closed, "the other process of the benchmark has ended");
    }
}

void Control::send_failure(std::string_view what) noexcept try {
    send_bytes(Kind::failure, std::as_bytes(std::span(what.substr(0, kLongestFailure))));
} catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the other process is gone
}

std::string Control::last_words() try {
    for (;;) receive_packet(Duration::zero());
} catch (const Error& error) {
    const bool silent = error.code() == Errc::timed_out;
    return silent ? std::string() : error.what();
}

std::vector<std::byte> Control::receive_packet(Duration limit) {
    pollfd waiting{.fd = descriptor_, .events = POLLIN, .revents = 0};
    int ready = 0;
    do {
        ready = ::poll(&waiting, 1, static_cast<int>(in_seconds(limit) * 1e3));
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        throw Error(Errc::timed_out,
                    fmt::format("the other process of the benchmark was silent for {} s",
                                in_seconds(limit)));
    }
    std::vector<std::byte> packet(sizeof(Kind) + kLongestFailure);
    const auto size = ::recv(descriptor_, packet.data(), packet.size(), 0);
    if (size <= 0) throw Error(Errc::link_closed, "the other process of the benchmark has ended");
    packet.resize(static_cast<std::size_t>(size));
    const auto kind = static_cast<Kind>(packet.front());
    packet.erase(packet.begin());
    if (kind == Kind::failure) {
        const std::string text(reinterpret_cast<const char*>(packet.data()), packet.size());
        throw Error(Errc::link_closed, "the server process failed: " + text);
    }
    return packet;
}

void Control::receive_bytes(std::span<std::byte> bytes, Duration limit) {
    const std::vector<std::byte> packet = receive_packet(limit);
    if (packet.size() != bytes.size()) {
        throw Error(
            Errc::protocol_violation,
            fmt::format("the processes of the benchmark are out of step: expected a message "
                        "of {1} bytes, received one of {0}",
                        packet.size(), bytes.size()));
    }
    std::ranges::copy(packet, bytes.begin());
}

}  // namespace nexar::bench

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nexar/error.hpp>

#include "base/address.hpp"
#include "byte_stream.hpp"
#include "control.hpp"
#include "timing.hpp"

namespace nexar::bench {

namespace {

int make_socket() {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) fail_system("create a TCP socket");
    return descriptor;
}

[[noreturn]] void fail_stream(std::string_view doing) {
    // A blocking socket fails with EAGAIN when its timeout expires.
    if (errno == EAGAIN) {
        throw Error(
            Errc::timed_out,
            fmt::format("cannot {} a TCP socket: the other process made no progress for {} s",
                        doing, in_seconds(kPatience)));
    }
    throw Error(Errc::link_closed,
                fmt::format("cannot {} a TCP socket: {}", doing, std::strerror(errno)));
}

Address loopback(std::uint16_t port) {
    return Address::parse("127.0.0.1:0").value().with_port(port);
}

}  // namespace

Patience::Patience() : end_(seconds_now() + in_seconds(kPatience)) {}

void Patience::tried() {
    constexpr unsigned kTriesPerLook = 1024;
    if (++tries_ % kTriesPerLook == 0 && seconds_now() > end_) {
        throw Error(Errc::timed_out,
                    "the other process neither read from nor wrote to its TCP socket in time");
    }
}

TcpStream::TcpStream(int descriptor) : descriptor_(descriptor) {
    const int on = 1;
    const timeval limit{.tv_sec = std::chrono::ceil<std::chrono::seconds>(kPatience).count(),
                        .tv_usec = 0};
    setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

TcpStream::~TcpStream() {
    ::close(descriptor_);
}

void TcpStream::start(Waiting waiting) {
    waiting_ = waiting;
    const int flags = waiting == Waiting::spinning ? O_NONBLOCK : 0;
    if (fcntl(descriptor_, F_SETFL, flags) != 0) fail_system("configure a TCP socket");
}

void TcpStream::write(std::span<const std::byte> bytes) {
    Patience patience;
    while (!bytes.empty()) {
        const auto sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN && waiting_ == Waiting::spinning) {
            patience.tried();
        } else if (errno != EINTR) {
            fail_stream("write to");
        }
    }
}

std::size_t TcpStream::read(std::span<std::byte> out) {
    Patience patience;
    for (;;) {
        const auto got = ::recv(descriptor_, out.data(), out.size(), 0);
        if (got >= 0) return static_cast<std::size_t>(got);
        if (errno == EAGAIN && waiting_ == Waiting::spinning) {
            patience.tried();
        } else if (errno != EINTR) {
            fail_stream("read from");
        }
    }
}

TcpListener::TcpListener() : descriptor_(make_socket()) {
    const Address any_port = loopback(0);
    if (::bind(descriptor_, any_port.native(), any_port.native_size()) != 0 ||
        ::listen(descriptor_, 1) != 0) {
        ::close(descriptor_);
        fail_system("listen on a TCP port");
    }
}

TcpListener::~TcpListener() {
    ::close(descriptor_);
}

std::uint16_t TcpListener::port() const {
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    if (getsockname(descriptor_, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
        fail_system("read the number of a TCP port");
    }
    return ntohs(bound.sin_port);
}

std::unique_ptr<TcpStream> TcpListener::accept() const {
    pollfd waiting{.fd = descriptor_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(in_seconds(kPatience) * 1e3)) <= 0) {
        throw Error(Errc::timed_out, "the client did not connect to the TCP port in time");
    }
    const int descriptor = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0) fail_system("accept a TCP connection");
    return std::make_unique<TcpStream>(descriptor);
}

std::unique_ptr<TcpStream> dial_tcp(std::uint16_t port) {
    auto stream = std::make_unique<TcpStream>(make_socket());
    const Address remote = loopback(port);
    if (::connect(stream->descriptor(), remote.native(), remote.native_size()) != 0) {
        fail_system("connect to the server's TCP port");
    }
    return stream;
}

}  // namespace nexar::bench

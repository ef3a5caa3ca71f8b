#include "link/shm/socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/try.hpp"
#include "link/shm/system_failure.hpp"

namespace nexar::shm {

namespace {

constexpr int kType = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr int kBacklog = 128;
constexpr std::string_view kPrefix = "nexar-";

struct NativeAddress {
    sockaddr_un address{};
    socklen_t size = 0;
};

NativeAddress native(const SocketName& name) noexcept {
    NativeAddress made;
    made.address.sun_family = AF_UNIX;
    char* at = made.address.sun_path + 1;  // a leading zero makes the name abstract
    std::memcpy(at, kPrefix.data(), kPrefix.size());
    at += kPrefix.size();
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (const std::byte byte : name) {
        *at++ = kDigits[std::to_integer<unsigned>(byte) >> 4U];
        *at++ = kDigits[std::to_integer<unsigned>(byte) & 15U];
    }
    made.size = static_cast<socklen_t>(at - reinterpret_cast<char*>(&made.address));
    return made;
}

Result<Descriptor> make_socket() {
    Descriptor made(::socket(AF_UNIX, kType, 0));
    if (!made) return system_failure("create a Unix socket");
    return made;
}

}  // namespace

Result<Descriptor> listen_at(const SocketName& name) {
    NEXAR_TRY_VALUE(made, make_socket());
    const NativeAddress address = native(name);
    const auto* any = reinterpret_cast<const sockaddr*>(&address.address);
    if (::bind(made.number(), any, address.size) != 0) return system_failure("bind a Unix socket");
    if (::listen(made.number(), kBacklog) != 0) return system_failure("listen on a Unix socket");
    return std::move(made);
}

Result<Descriptor> connect_to(const SocketName& name) {
    NEXAR_TRY_VALUE(made, make_socket());
    const NativeAddress address = native(name);
    const auto* any = reinterpret_cast<const sockaddr*>(&address.address);
    if (::connect(made.number(), any, address.size) == 0) return std::move(made);
    if (errno == EAGAIN || errno == EINTR) return Descriptor();
    if (errno == ECONNREFUSED) {
        return Error(Errc::link_closed,
                     "the peer's socket cannot be reached from this process: the two run in "
                     "different network namespaces (containers), or the peer has ended");
    }
    return system_failure("connect to the peer's Unix socket");
}

Descriptor accept_from(int listener) noexcept {
    return Descriptor(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

Result<Credentials> peer_credentials(int socket) {
    ucred found{};
    socklen_t size = sizeof found;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) != 0) {
        return system_failure("ask for the credentials of the peer");
    }
    return Credentials{.user = found.uid, .process = found.pid};
}

Descriptor watch_process(pid_t process) noexcept {
    const auto made = ::syscall(SYS_pidfd_open, process, 0);
    return Descriptor(static_cast<int>(made));
}

Received receive_message(int socket, Message& out) noexcept {
    out.size = 0;
    out.descriptor_count = 0;
    out.truncated = false;
    for (Descriptor& descriptor : out.descriptors) descriptor = Descriptor();
    iovec place{.iov_base = out.bytes.data(), .iov_len = out.bytes.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * Message::kMaxDescriptors)>
        control{};
    msghdr header{};
    header.msg_iov = &place;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    constexpr int kFlags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
    ssize_t size = ::recvmsg(socket, &header, kFlags);
    // The peer closed its socket before it read everything. What it sent follows.
    if (size < 0 && errno == ECONNRESET) size = ::recvmsg(socket, &header, kFlags);
    if (size < 0) {
        return errno == EAGAIN || errno == EINTR ? Received::nothing : Received::closed;
    }
    for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr;
         each = CMSG_NXTHDR(&header, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(each) + i * sizeof number, sizeof number);
            Descriptor descriptor(number);
            if (out.descriptor_count == out.descriptors.size()) {
                out.truncated = true;
                continue;
            }
            out.descriptors[out.descriptor_count++] = std::move(descriptor);
        }
    }
    if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) out.truncated = true;
    if (size == 0) return Received::closed;
    out.size = static_cast<std::size_t>(size);
    return Received::message;
}

Sent send_message(int socket, port::ConstBytes bytes, int descriptor) noexcept {
    iovec place{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &place;
    header.msg_iovlen = 1;
    if (descriptor >= 0) {
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof descriptor);
        std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
    }
    if (::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return Sent::sent;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ETOOMANYREFS
               ? Sent::full
               : Sent::closed;
}

void ring_bell(int socket) noexcept {
    constexpr std::array<std::byte, 1> kBell{};
    send_message(socket, kBell);
}

}  // namespace nexar::shm

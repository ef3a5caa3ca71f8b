#include "support/udp_fault/udp_socket.hpp"

#include <fmt/format.h>
#include <linux/sock_diag.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/try.hpp"

namespace nexar::udp_fault {

namespace {

constexpr std::uint8_t kEcnBits = 0x03;
constexpr int kBufferBytes = 8 << 20;

/// Space for the only control message in use, the traffic class.
struct alignas(cmsghdr) Control {
    std::array<char, CMSG_SPACE(sizeof(int))> bytes{};
};

struct Option {
    int level;
    int name;
};

Option receive_class(int family) noexcept {
    return family == AF_INET6 ? Option{IPPROTO_IPV6, IPV6_RECVTCLASS}
                              : Option{IPPROTO_IP, IP_RECVTOS};
}

Option send_class(int family) noexcept {
    return family == AF_INET6 ? Option{IPPROTO_IPV6, IPV6_TCLASS} : Option{IPPROTO_IP, IP_TOS};
}

bool set_option(int descriptor, Option option, int value) noexcept {
    return ::setsockopt(descriptor, option.level, option.name, &value, sizeof value) == 0;
}

/// Exceeds the system's limit if permitted, otherwise goes up to it.
void enlarge(int descriptor, int forced, int plain) noexcept {
    if (!set_option(descriptor, {SOL_SOCKET, forced}, kBufferBytes)) {
        set_option(descriptor, {SOL_SOCKET, plain}, kBufferBytes);
    }
}

/// IPv4 delivers the traffic class as one byte, IPv6 as an int.
std::uint8_t ecn_of(msghdr& header) noexcept {
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
            std::uint8_t tos = 0;
            std::memcpy(&tos, CMSG_DATA(c), sizeof tos);
            return tos & kEcnBits;
        }
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            int traffic_class = 0;
            std::memcpy(&traffic_class, CMSG_DATA(c), sizeof traffic_class);
            return static_cast<std::uint8_t>(traffic_class) & kEcnBits;
        }
    }
    return 0;
}

void put_ecn(msghdr& header, Control& control, int family, int ecn) noexcept {
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    cmsghdr* const c = CMSG_FIRSTHDR(&header);
    const Option option = send_class(family);
    c->cmsg_level = option.level;
    c->cmsg_type = option.name;
    c->cmsg_len = CMSG_LEN(sizeof ecn);
    std::memcpy(CMSG_DATA(c), &ecn, sizeof ecn);
}

/// An error that an earlier ICMP answer left at a connected socket; the call itself did nothing.
bool is_echo_of_the_past(int error) noexcept {
    return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH;
}

Errc code_of(int error) noexcept {
    switch (error) {
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
            return Errc::out_of_memory;
        case EAFNOSUPPORT:
        case ENOSYS:
            return Errc::unsupported;
        default:
            return Errc::invalid_argument;
    }
}

}  // namespace

Error system_failure(std::string_view doing) {
    const int error = errno;
    return {code_of(error),
            fmt::format("cannot {}: {}", doing, std::generic_category().message(error))};
}

Descriptor::~Descriptor() {
    if (valid()) ::close(value_);
}

ReceiveBatch::ReceiveBatch()
    // Not cleared, so that pages that no large datagram reaches are never touched.
    : memory_(std::make_unique_for_overwrite<
              std::array<std::array<std::byte, kMaxDatagram>, kBatch>>()) {}

Result<UdpSocket> UdpSocket::make(int family) {
    UdpSocket socket;
    socket.family_ = family;
    socket.descriptor_ =
        Descriptor(::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
    const int descriptor = socket.descriptor();
    if (!socket.descriptor_.valid()) {
        return system_failure(family == AF_INET6 ? "open an IPv6 UDP socket" : "open a UDP socket");
    }
    if (family == AF_INET6 && !set_option(descriptor, {IPPROTO_IPV6, IPV6_V6ONLY}, 1)) {
        return system_failure("restrict a socket to IPv6");
    }
    if (!set_option(descriptor, receive_class(family), 1)) {
        return system_failure("enable reception of the ECN bits");
    }
    enlarge(descriptor, SO_RCVBUFFORCE, SO_RCVBUF);
    enlarge(descriptor, SO_SNDBUFFORCE, SO_SNDBUF);
    return socket;
}

Result<void> UdpSocket::bind_to(const Address& local) {
    if (::bind(descriptor(), local.raw(), local.length) == 0) return {};
    return system_failure(fmt::format(
        "bind UDP {} (another program uses the port, or this host does not have the address)",
        describe(local)));
}

Result<void> UdpSocket::learn_local() {
    local_.length = sizeof local_.storage;
    if (::getsockname(descriptor(), local_.raw(), &local_.length) == 0) return {};
    return system_failure("read the local address of a socket");
}

Result<UdpSocket> UdpSocket::bind(const Address& local) {
    NEXAR_TRY_VALUE(socket, make(local.family()));
    NEXAR_TRY(socket.bind_to(local));
    NEXAR_TRY(socket.learn_local());
    return std::move(socket);
}

Result<UdpSocket> UdpSocket::connect(const Address& local, const Address& target) {
    NEXAR_TRY_VALUE(socket, make(target.family()));
    if (local.length > 0) NEXAR_TRY(socket.bind_to(local));
    if (::connect(socket.descriptor(), target.raw(), target.length) != 0) {
        return system_failure(fmt::format("connect UDP to {}", describe(target)));
    }
    socket.connected_ = true;
    NEXAR_TRY(socket.learn_local());
    return std::move(socket);
}

bool UdpSocket::receive(ReceiveBatch& batch) {
    std::array<mmsghdr, kBatch> headers{};
    std::array<iovec, kBatch> vectors;
    std::array<Control, kBatch> controls;
    for (std::size_t i = 0; i < kBatch; ++i) {
        auto& memory = (*batch.memory_)[i];
        vectors[i] = {.iov_base = memory.data(), .iov_len = memory.size()};
        msghdr& header = headers[i].msg_hdr;
        header.msg_name = batch.parcels_[i].peer.raw();
        header.msg_namelen = sizeof(sockaddr_storage);
        header.msg_iov = &vectors[i];
        header.msg_iovlen = 1;
        header.msg_control = controls[i].bytes.data();
        header.msg_controllen = controls[i].bytes.size();
    }
    int got = 0;
    do {
        got = ::recvmmsg(descriptor(), headers.data(), kBatch, 0, nullptr);
    } while (got < 0 && (errno == EINTR || is_echo_of_the_past(errno)));
    batch.filled_ = static_cast<std::size_t>(std::max(got, 0));
    for (std::size_t i = 0; i < batch.filled_; ++i) {
        Parcel& parcel = batch.parcels_[i];
        parcel.bytes = std::span((*batch.memory_)[i]).first(headers[i].msg_len);
        parcel.peer.length = headers[i].msg_hdr.msg_namelen;
        parcel.ecn = ecn_of(headers[i].msg_hdr);
    }
    return got > 0;
}

/// The arguments of sendmmsg(); refers to the parcels.
struct UdpSocket::Outgoing {
    std::array<mmsghdr, kBatch> headers{};
    std::array<iovec, kBatch> vectors;
    std::array<Control, kBatch> controls;

    // The kernel's interface is not const-correct, but writes to nothing here.
    void put(std::size_t i, const Parcel& parcel, const UdpSocket& socket) noexcept {
        msghdr& header = headers[i].msg_hdr;
        vectors[i] = {.iov_base = const_cast<std::byte*>(parcel.bytes.data()),
                      .iov_len = parcel.bytes.size()};
        header.msg_iov = &vectors[i];
        header.msg_iovlen = 1;
        if (!socket.connected_) {
            header.msg_name = const_cast<sockaddr*>(parcel.peer.raw());
            header.msg_namelen = parcel.peer.length;
        }
        if (parcel.ecn != 0) put_ecn(header, controls[i], socket.family_, parcel.ecn);
    }
};

std::size_t UdpSocket::send_batch(std::span<const Parcel> parcels) {
    Outgoing outgoing;
    for (std::size_t i = 0; i < parcels.size(); ++i) outgoing.put(i, parcels[i], *this);
    std::size_t taken = 0;
    bool retried = false;
    for (std::size_t next = 0; next < parcels.size();) {
        const int sent = ::sendmmsg(descriptor(), &outgoing.headers[next],
                                    static_cast<unsigned>(parcels.size() - next), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && is_echo_of_the_past(errno) && !retried) {
            retried = true;
            continue;
        }
        retried = false;
        const auto done = static_cast<std::size_t>(std::max(sent, 0));
        taken += done;
        next += std::max<std::size_t>(done, 1);
    }
    return taken;
}

std::size_t UdpSocket::send(std::span<const Parcel> parcels) {
    std::size_t taken = 0;
    while (!parcels.empty()) {
        const auto batch = parcels.first(std::min(parcels.size(), kBatch));
        taken += send_batch(batch);
        parcels = parcels.subspan(batch.size());
    }
    return taken;
}

std::uint64_t UdpSocket::missed() const {
    std::array<std::uint32_t, SK_MEMINFO_VARS> numbers{};
    socklen_t length = sizeof numbers;
    if (::getsockopt(descriptor(), SOL_SOCKET, SO_MEMINFO, numbers.data(), &length) != 0) return 0;
    return numbers[SK_MEMINFO_DROPS];
}

}  // namespace nexar::udp_fault

#include <ctime>

// Needs <ctime> before it.
#include <linux/errqueue.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "link/quic/udp_socket.hpp"

// Reads the network's reports (ICMP) about datagrams that it did not deliver. The kernel keeps them
// in a separate queue, and the next system call on the socket fails with the oldest error, even if
// that call is about another datagram.
namespace nexar::quic {

namespace {

constexpr std::size_t kMostAtOnce = 64;
constexpr std::size_t kMostRefusals = 64;

const sock_extended_err* extended(msghdr& header) noexcept {
    for (cmsghdr* entry = CMSG_FIRSTHDR(&header); entry != nullptr;
         entry = CMSG_NXTHDR(&header, entry)) {
        const bool v4 = entry->cmsg_level == IPPROTO_IP && entry->cmsg_type == IP_RECVERR;
        const bool v6 = entry->cmsg_level == IPPROTO_IPV6 && entry->cmsg_type == IPV6_RECVERR;
        if ((v4 || v6) && entry->cmsg_len >= CMSG_LEN(sizeof(sock_extended_err))) {
            return reinterpret_cast<const sock_extended_err*>(CMSG_DATA(entry));
        }
    }
    return nullptr;
}

}  // namespace

std::size_t UdpSocket::drain_errors() noexcept {
    std::size_t from_network = 0;
    for (std::size_t i = 0; i < kMostAtOnce; ++i) {
        Refusal refusal;
        sockaddr_storage target{};
        iovec vector{.iov_base = refusal.quoted.data(), .iov_len = refusal.quoted.size()};
        alignas(cmsghdr) std::array<std::byte, 512> control{};
        msghdr header{};
        header.msg_name = &target;
        header.msg_namelen = sizeof target;
        header.msg_iov = &vector;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        const auto bytes = ::recvmsg(descriptor_, &header, MSG_ERRQUEUE | MSG_DONTWAIT);
        if (bytes < 0) break;
        const sock_extended_err* what = extended(header);
        if (what == nullptr || what->ee_origin == SO_EE_ORIGIN_LOCAL) continue;
        ++from_network;
        ++counts_.icmp_errors;
        if (what->ee_errno != ECONNREFUSED || refusals_.size() >= kMostRefusals) continue;
        const auto to =
            Address::from_native(reinterpret_cast<sockaddr*>(&target), header.msg_namelen);
        if (!to) continue;
        refusal.remote = to->unmapped();
        refusal.bytes = static_cast<std::size_t>(bytes);
        refusals_.push_back(refusal);
    }
    return from_network;
}

void UdpSocket::take_refusals(const std::function<void(const Refusal&)>& take) {
    for (const Refusal& refusal : std::exchange(refusals_, {})) take(refusal);
}

}  // namespace nexar::quic

#include "link/quic/udp_socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/udp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "link/quic/udp_message.hpp"

namespace nexar::quic {

namespace {

constexpr std::size_t kMostDatagram = 65000;
// IPv6 and UDP headers; also used for IPv4, so that the limit does not depend on the IP version.
constexpr std::size_t kHeaders = 48;

Error system_error(std::string_view doing, const Address& address) {
    return {Errc::bad_config, fmt::format("cannot {} {}: {}", doing, address.text(),
                                          std::strerror(errno))};  // NOLINT(concurrency-mt-unsafe)
}

bool set(int descriptor, int level, int option, int value) noexcept {
    return setsockopt(descriptor, level, option, &value, sizeof value) == 0;
}

int read_option(int descriptor, int level, int option) noexcept {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(descriptor, level, option, &value, &size) == 0 ? value : 0;
}

bool would_block(int error) noexcept {
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
}

/// True for an error of the network or of the peer, not of the way in which the datagram was sent.
bool is_of_network(int error) noexcept {
    constexpr std::array kErrors = {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ENETDOWN,
                                    ENONET,       EPROTO,       ENOPROTOOPT, EACCES,    EPERM};
    return std::ranges::find(kErrors, error) != kErrors.end();
}

// How often to repeat a call that failed with the error of another datagram.
constexpr int kMostAgain = 4;

}  // namespace

UdpSocket::UdpSocket(int descriptor, const Address& local, const UdpOptions& options)
    : descriptor_(descriptor), habits_{.bound = local}, options_(options) {}

UdpSocket::~UdpSocket() {
    ::close(descriptor_);
}

Result<std::unique_ptr<UdpSocket>> UdpSocket::open(const Address& local,
                                                   const UdpOptions& options) {
    const int descriptor = ::socket(local.is_v6() ? AF_INET6 : AF_INET,
                                    SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
    if (descriptor < 0) return system_error("create a UDP socket for", local);
    std::unique_ptr<UdpSocket> udp(new UdpSocket(descriptor, local, options));
    NEXAR_TRY(udp->configure());
    return udp;
}

Result<void> UdpSocket::bind() {
    Address& bound = habits_.bound;
    if (::bind(descriptor_, bound.native(), bound.native_size()) != 0) {
        return system_error("listen on UDP port", bound);
    }
    sockaddr_storage found{};
    socklen_t size = sizeof found;
    if (getsockname(descriptor_, reinterpret_cast<sockaddr*>(&found), &size) != 0) {
        return system_error("find the port of", bound);
    }
    NEXAR_TRY_VALUE(address, Address::from_native(reinterpret_cast<sockaddr*>(&found), size));
    bound = address;
    return {};
}

Result<void> UdpSocket::configure() {
    const Address& local = habits_.bound;
    // A node that listens on all addresses has one port for IPv4 and IPv6.
    const bool both = local.is_v6() && local.is_any();
    if (local.is_v6()) set(descriptor_, IPPROTO_IPV6, IPV6_V6ONLY, both ? 0 : 1);
    NEXAR_TRY(bind());
    // Our own probes find the limit of the path; the kernel must neither fragment a datagram nor
    // use its cached MTU.
    if (local.is_v6()) {
        set(descriptor_, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
        set(descriptor_, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
        if (local.is_any()) set(descriptor_, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
    }
    if (!local.is_v6() || both) {
        set(descriptor_, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
        set(descriptor_, IPPROTO_IP, IP_RECVTOS, 1);
    }
    if (!local.is_v6() && local.is_any()) set(descriptor_, IPPROTO_IP, IP_PKTINFO, 1);
    ask_for_errors(!local.is_v6() || both);
    mark_all();
    options_.gro = options_.gro && set(descriptor_, IPPROTO_UDP, UDP_GRO, 1);
    // Setting it to 0 changes nothing, and fails if the kernel does not support it.
    options_.gso = options_.gso && set(descriptor_, IPPROTO_UDP, UDP_SEGMENT, 0);
    ask_for_buffers();
    receiver_ = std::make_unique<Receiver>(options_);
    sender_ = std::make_unique<Sender>();
    return {};
}

/// All packets carry ECT(0) (RFC 9000 13.4) on a path that preserves it. The socket adds it, so
/// that messages do not need control data for it.
void UdpSocket::mark_all() {
    constexpr std::uint8_t kEct0 = 2;
    const Address& local = habits_.bound;
    const bool v4 = !local.is_v6() || local.is_any();
    const bool marked = (!v4 || set(descriptor_, IPPROTO_IP, IP_TOS, kEct0)) &&
                        (!local.is_v6() || set(descriptor_, IPPROTO_IPV6, IPV6_TCLASS, kEct0));
    if (marked) {
        habits_.ecn = kEct0;
    } else {
        set(descriptor_, IPPROTO_IP, IP_TOS, 0);
    }
}

/// Requests ICMP errors: the host of a dead process refuses datagrams to it at once.
void UdpSocket::ask_for_errors(bool v4) {
    if (habits_.bound.is_v6()) set(descriptor_, IPPROTO_IPV6, IPV6_RECVERR, 1);
    if (v4) set(descriptor_, IPPROTO_IP, IP_RECVERR, 1);
}

template <class Call>
auto UdpSocket::past_errors(Call call) {
    auto result = call();
    for (int again = 0; result < 0 && !would_block(errno) && again < kMostAgain; ++again) {
        const int error = errno;
        if (drain_errors() == 0 && !is_of_network(error)) {
            errno = error;
            break;
        }
        result = call();
    }
    return result;
}

void UdpSocket::ask_for_buffers() {
    ask_for_buffer(SO_RCVBUF, SO_RCVBUFFORCE, options_.receive_buffer, "net.core.rmem_max");
    ask_for_buffer(SO_SNDBUF, SO_SNDBUFFORCE, options_.send_buffer, "net.core.wmem_max");
}

void UdpSocket::ask_for_buffer(int option, int force, std::size_t wanted, const char* sysctl) {
    const auto bytes = static_cast<int>(wanted);
    if (!set(descriptor_, SOL_SOCKET, force, bytes)) set(descriptor_, SOL_SOCKET, option, bytes);
    // The kernel doubles the requested size for its own bookkeeping, and reports the double.
    const auto granted = static_cast<std::size_t>(read_option(descriptor_, SOL_SOCKET, option)) / 2;
    if (granted >= wanted) return;
    NEXAR_LOG_WARNING(
        "the kernel grants a socket buffer of {} KiB instead of {} KiB: packets will be lost and "
        "retransmitted when a peer sends faster than this node reads. To raise the limit: sysctl "
        "-w {}={}",
        granted / 1024, wanted / 1024, sysctl, wanted);
}

std::size_t UdpSocket::largest_datagram(const Address& remote) {
    // Only a connected socket reports the MTU of its route, so use one that sends nothing.
    const int probe =
        ::socket(remote.is_v6() ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
    if (probe < 0) return kLeastDatagram;
    int mtu = 0;
    if (::connect(probe, remote.native(), remote.native_size()) == 0) {
        mtu = remote.is_v6() ? read_option(probe, IPPROTO_IPV6, IPV6_MTU)
                             : read_option(probe, IPPROTO_IP, IP_MTU);
    }
    ::close(probe);
    const auto width = static_cast<std::size_t>(std::max(mtu, 0));
    if (width <= kLeastDatagram + kHeaders) return kLeastDatagram;
    return std::min(width - kHeaders, kMostDatagram);
}

bool UdpSocket::merges(const Address& remote) const noexcept {
    return options_.gso && std::ranges::none_of(no_gso_, [&](const Address& host) {
               return host.same_host(remote);
           });
}

PacketPath::Sent UdpSocket::send(const PacketBatch& batch) {
    const bool one = batch.bytes.size() <= batch.segment_bytes;
    if (sent_of_batch_ == 0 && !one && merges(batch.path.remote)) return send_merged(batch);
    const Sent sent = send_single(batch, sent_of_batch_);
    if (sent == Sent::done) sent_of_batch_ = 0;
    return sent;
}

PacketPath::Sent UdpSocket::send_merged(const PacketBatch& batch) {
    OutMessage message(batch, batch.bytes, habits_);
    message.segment(batch.segment_bytes);
    ++counts_.calls_out;
    if (past_errors([&] { return ::sendmsg(descriptor_, &message.header, 0); }) >= 0) {
        counts_.datagrams_out +=
            (batch.bytes.size() + batch.segment_bytes - 1) / batch.segment_bytes;
        return Sent::done;
    }
    const int error = errno;
    if (would_block(error)) return Sent::blocked;
    // The kernel or the device refuses the merged form or one of the datagrams. Send each one
    // alone, so that only those that cannot pass are lost.
    ++counts_.gso_refused;
    const bool too_large = error == EMSGSIZE;
    if (!too_large && !is_of_network(error) && no_gso_.size() < 1024) {
        NEXAR_LOG_INFO(
            "segmentation offload to {} failed with error {}; sending datagrams one by one",
            batch.path.remote.text(), error);
        no_gso_.push_back(batch.path.remote);
    }
    const Sent sent = send_single(batch, 0);
    if (sent == Sent::done) sent_of_batch_ = 0;
    return sent;
}

PacketPath::Sent UdpSocket::send_single(const PacketBatch& batch, std::size_t from) {
    const std::size_t at_once = options_.batched ? Sender::kAtOnce : 1;
    while (from < batch.bytes.size()) {
        std::size_t count = 0;
        for (std::size_t at = from; at < batch.bytes.size() && count < at_once;
             at += batch.segment_bytes) {
            const std::size_t size = std::min(batch.segment_bytes, batch.bytes.size() - at);
            sender_->set(count++, batch, batch.bytes.subspan(at, size), habits_);
        }
        ++counts_.calls_out;
        int sent = past_errors([&] { return sender_->send(descriptor_, count); });
        if (sent < 0 && would_block(errno)) {
            sent_of_batch_ = from;
            return Sent::blocked;
        }
        if (sent < 0) {
            // The first one failed: treat it as lost. PMTUD learns from it that the size is too
            // large.
            (errno == EMSGSIZE ? counts_.too_large : counts_.lost_in_send) += 1;
            sent = 1;
        } else {
            counts_.datagrams_out += static_cast<std::size_t>(sent);
        }
        from += static_cast<std::size_t>(sent) * batch.segment_bytes;
    }
    return Sent::done;
}

bool UdpSocket::receive(std::size_t limit, const std::function<void(const Arrival&)>& take) {
    std::size_t received = 0;
    int again = 0;
    while (received < limit) {
        const std::size_t count = receiver_->fetch(descriptor_, habits_.bound);
        if (count == 0 && receiver_->failed() && again++ < kMostAgain) {
            drain_errors();
            continue;
        }
        if (count == 0) return false;
        ++counts_.calls_in;
        for (std::size_t i = 0; i < count; ++i) {
            const Arrival arrival = receiver_->arrival(i);
            received += arrival.bytes.size();
            counts_.datagrams_in +=
                (arrival.bytes.size() + arrival.segment_bytes - 1) / arrival.segment_bytes;
            if (!arrival.bytes.empty()) take(arrival);
        }
        if (!receiver_->more()) return false;
    }
    return true;
}

}  // namespace nexar::quic

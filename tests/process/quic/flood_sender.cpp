#include "process/quic/flood_sender.hpp"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

#include "process/quic/wire.hpp"

namespace nexar::testing {

namespace {

constexpr std::size_t kPackets = 4096;
constexpr std::size_t kPorts = 32;
constexpr std::size_t kPacketBytes = 1200;

/// Keeps the first datagram of every client that sends through it.
class CapturingPath final : public quic::PacketPath {
public:
    explicit CapturingPath(std::vector<FloodSender::Packet>& packets) noexcept
        : packets_(&packets) {}

    Sent send(const quic::PacketBatch& batch) override {
        const auto first = batch.bytes.first(std::min(batch.segment_bytes, batch.bytes.size()));
        if (first.size() >= kPacketBytes) packets_->emplace_back(first.begin(), first.end());
        return Sent::done;
    }
    std::size_t largest_datagram(const Address& /*remote*/) override { return kPacketBytes; }

private:
    std::vector<FloodSender::Packet>* packets_;
};

FloodSender::Packet random_initial(Random& random) {
    FloodSender::Packet packet(kPacketBytes);
    fill_pattern(random.next(), 0, packet);
    // RFC 9000 17.2.2: long header, version 1, two ids of 8 bytes, no token, the rest is payload.
    constexpr std::size_t kIdBytes = 8;
    constexpr std::size_t kLengthAt = 1 + 4 + 1 + kIdBytes + 1 + kIdBytes + 1;
    packet[0] = std::byte{0xc3};
    packet[1] = packet[2] = packet[3] = std::byte{0};
    packet[4] = std::byte{1};
    packet[5] = packet[6 + kIdBytes] = std::byte{kIdBytes};
    packet[kLengthAt - 1] = std::byte{0};
    const std::size_t length = kPacketBytes - kLengthAt - 2;
    packet[kLengthAt] = std::byte{0x40} | static_cast<std::byte>(length >> 8U);
    packet[kLengthAt + 1] = static_cast<std::byte>(length & 0xffU);
    return packet;
}

int open_port() {
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    // Nobody reads the answers, and they must not pile up in the kernel.
    const int least = 1;
    if (socket < 0 || ::bind(socket, reinterpret_cast<sockaddr*>(&any), sizeof any) != 0 ||
        ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &least, sizeof least) != 0) {
        throw std::system_error(errno, std::generic_category(), "a port of the flood");
    }
    return socket;
}

/// One datagram with its own source address.
struct Spoofed {
    iovec vector{};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(in_pktinfo))> control{};

    void prepare(msghdr& header, Address& target, FloodSender::Packet& packet, Random& random) {
        vector = {.iov_base = packet.data(), .iov_len = packet.size()};
        header = {};
        header.msg_name = target.native();
        header.msg_namelen = target.native_size();
        header.msg_iov = &vector;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        cmsghdr* entry = CMSG_FIRSTHDR(&header);
        entry->cmsg_level = IPPROTO_IP;
        entry->cmsg_type = IP_PKTINFO;
        entry->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
        in_pktinfo source{};
        const auto host = static_cast<std::uint32_t>(0x7f010000U + random.below(0xfd0000U));
        source.ipi_spec_dst.s_addr = htonl(host);
        std::memcpy(CMSG_DATA(entry), &source, sizeof source);
    }
};

}  // namespace

FloodSender::FloodSender(const Address& target, const TestCluster& cluster, std::uint64_t seed)
    : target_(target), random_(seed) {
    for (std::size_t i = 0; i < kPorts; ++i) sockets_.push_back(open_port());
    make_packets(cluster);
}

FloodSender::~FloodSender() {
    for (const int socket : sockets_) ::close(socket);
}

void FloodSender::make_packets(const TestCluster& cluster) {
    const SteadyClock clock;
    BufferPool pool(PoolProfile::training());
    CapturingPath path(packets_);
    const std::size_t whole = kSanitized ? kPackets / 16 : kPackets / 2;
    quic::Endpoint dialer(path, pool, node_options(cluster, 9));
    while (packets_.size() < whole) {
        dialer.dial(clock.now(), target_, {.cluster = cluster.id(), .node = {}}).value();
        dialer.flush(clock.now());
    }
    while (packets_.size() < kPackets) packets_.push_back(random_initial(random_));
    for (std::size_t i = packets_.size() - 1; i > 0; --i) {
        std::swap(packets_[i], packets_[random_.below(i + 1)]);
    }
}

std::size_t FloodSender::send_batch() {
    std::array<Spoofed, kBatch> spoofed;
    std::array<mmsghdr, kBatch> headers{};
    for (std::size_t i = 0; i < kBatch; ++i) {
        spoofed[i].prepare(headers[i].msg_hdr, target_, packets_[next_packet_], random_);
        next_packet_ = (next_packet_ + 1) % packets_.size();
    }
    next_socket_ = (next_socket_ + 1) % sockets_.size();
    const int sent = ::sendmmsg(sockets_[next_socket_], headers.data(), kBatch, 0);
    if (sent < 0) throw std::system_error(errno, std::generic_category(), "sendmmsg of the flood");
    return static_cast<std::size_t>(sent);
}

void FloodSender::run(double per_second, const Channel& channel) {
    const SteadyClock clock;
    ::setpriority(PRIO_PROCESS, 0, 10);
    channel.say("flooding");
    const TimePoint start = clock.now();
    std::uint64_t sent = 0;
    while (!channel.heard()) {
        const double seconds = std::chrono::duration<double>(clock.now() - start).count();
        const double due = per_second * seconds;
        while (static_cast<double>(sent) < due) {
            sent += send_batch();
            // On a machine that is too slow for the rate, the sender must still notice the request
            // to stop.
            if (sent % (64 * kBatch) == 0) break;
        }
        const timespec millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
        if (static_cast<double>(sent) >= due) ::nanosleep(&millisecond, nullptr);
    }
    channel.say(std::to_string(sent));
}

}  // namespace nexar::testing

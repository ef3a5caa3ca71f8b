#include "link/quic/udp_message.hpp"

#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/assert.hpp"

namespace nexar::quic {

namespace {

constexpr std::size_t kSlotBytes = 65536;
constexpr std::size_t kMostSlots = 16;
constexpr std::size_t kLargeMessage = std::size_t{16} * 1024;

constexpr std::uint8_t kEcnBits = 3;

}  // namespace

OutMessage::OutMessage(const PacketBatch& batch, std::span<const std::byte> bytes,
                       const UdpSocket::Habits& habits)
    : to_(batch.path.remote) {
    const Address& bound = habits.bound;
    name_ = bound.is_v6() ? to_.mapped() : to_;
    header.msg_name = name_.native();
    header.msg_namelen = name_.native_size();
    // sendmsg() only reads it.
    vector_ = {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    header.msg_iov = &vector_;
    header.msg_iovlen = 1;
    header.msg_control = control_.data();
    header.msg_controllen = 0;
    if (batch.ecn != habits.ecn) {
        const int level = to_.is_v6() ? IPPROTO_IPV6 : IPPROTO_IP;
        const int value = batch.ecn;
        std::memcpy(add(level, to_.is_v6() ? IPV6_TCLASS : IP_TOS, sizeof value), &value,
                    sizeof value);
    }
    // On a socket bound to any-address, answer from the address that the peer wrote to.
    if (bound.is_any() && !batch.path.local.is_any()) {
        if (to_.is_v6()) {
            in6_pktinfo source{};
            source.ipi6_addr = batch.path.local.v6().sin6_addr;
            std::memcpy(add(IPPROTO_IPV6, IPV6_PKTINFO, sizeof source), &source, sizeof source);
        } else {
            in_pktinfo source{};
            source.ipi_spec_dst = batch.path.local.v4().sin_addr;
            std::memcpy(add(IPPROTO_IP, IP_PKTINFO, sizeof source), &source, sizeof source);
        }
    }
    if (header.msg_controllen == 0) header.msg_control = nullptr;
}

void* OutMessage::add(int level, int type, std::size_t bytes) noexcept {
    NEXAR_ASSERT(header.msg_controllen + CMSG_SPACE(bytes) <= control_.size());
    header.msg_control = control_.data();
    auto* entry = reinterpret_cast<cmsghdr*>(control_.data() + header.msg_controllen);
    header.msg_controllen += CMSG_SPACE(bytes);
    entry->cmsg_level = level;
    entry->cmsg_type = type;
    entry->cmsg_len = CMSG_LEN(bytes);
    return CMSG_DATA(entry);
}

void OutMessage::segment(std::size_t bytes) noexcept {
    const auto size = static_cast<std::uint16_t>(bytes);
    std::memcpy(add(IPPROTO_UDP, UDP_SEGMENT, sizeof size), &size, sizeof size);
}

void UdpSocket::Sender::set(std::size_t index, const PacketBatch& batch,
                            std::span<const std::byte> bytes, const Habits& habits) {
    const OutMessage& message = messages_[index].emplace(batch, bytes, habits);
    headers_[index] = {.msg_hdr = message.header, .msg_len = 0};
}

int UdpSocket::Sender::send(int descriptor, std::size_t count) {
    if (count == 1) return ::sendmsg(descriptor, &headers_[0].msg_hdr, 0) >= 0 ? 1 : -1;
    return ::sendmmsg(descriptor, headers_.data(), static_cast<unsigned>(count), 0);
}

UdpSocket::Receiver::Receiver(const UdpOptions& options)
    : slots_(options.batched ? kMostSlots : 1),
      memory_(std::make_unique_for_overwrite<std::byte[]>(slots_ * kSlotBytes)),
      slot_(slots_),
      headers_(slots_),
      next_(1) {}

void UdpSocket::Receiver::prepare(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        Slot& slot = slot_[i];
        slot.vector = {.iov_base = memory_.get() + i * kSlotBytes, .iov_len = kSlotBytes};
        headers_[i] = {};
        msghdr& header = headers_[i].msg_hdr;
        header.msg_name = &slot.from;
        header.msg_namelen = sizeof slot.from;
        header.msg_iov = &slot.vector;
        header.msg_iovlen = 1;
        header.msg_control = slot.control.data();
        header.msg_controllen = slot.control.size();
    }
}

std::size_t UdpSocket::Receiver::fetch(int descriptor, const Address& bound) {
    bound_ = bound;
    used_ = next_;
    prepare(used_);
    int count = 0;
    do {
        if (used_ > 1) {
            count = ::recvmmsg(descriptor, headers_.data(), static_cast<unsigned>(used_),
                               MSG_DONTWAIT, nullptr);
        } else {
            const auto bytes = ::recvmsg(descriptor, &headers_[0].msg_hdr, MSG_DONTWAIT);
            count = bytes >= 0 ? 1 : -1;
            if (bytes >= 0) headers_[0].msg_len = static_cast<unsigned>(bytes);
        }
    } while (count < 0 && errno == EINTR);
    failed_ = count < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
    count_ = count > 0 ? static_cast<std::size_t>(count) : 0;
    // An empty poll should cost little, a flood of small datagrams is read in bulk, and large ones
    // are better read one by one, into memory that stays in the cache.
    const bool small = count_ != 0 && headers_[count_ - 1].msg_len < kLargeMessage;
    next_ = small && count_ == used_ ? std::min(4 * used_, slots_) : 1;
    alone_ = used_ == 1 && next_ > 1;
    return count_;
}

UdpSocket::Arrival UdpSocket::Receiver::arrival(std::size_t index) const {
    const msghdr& header = headers_[index].msg_hdr;
    Arrival arrival;
    const auto from =
        Address::from_native(static_cast<const sockaddr*>(header.msg_name), header.msg_namelen);
    if (!from || (header.msg_flags & MSG_TRUNC) != 0) return {.segment_bytes = 1};
    arrival.path = {.local = bound_, .remote = from->unmapped()};
    arrival.bytes = {memory_.get() + index * kSlotBytes, headers_[index].msg_len};
    arrival.segment_bytes = std::max<std::size_t>(arrival.bytes.size(), 1);
    auto* mutable_header = const_cast<msghdr*>(&header);  // CMSG_NXTHDR takes no const
    for (cmsghdr* entry = CMSG_FIRSTHDR(mutable_header); entry != nullptr;
         entry = CMSG_NXTHDR(mutable_header, entry)) {
        const auto* content = CMSG_DATA(entry);
        if (entry->cmsg_level == IPPROTO_UDP && entry->cmsg_type == UDP_GRO) {
            int size = 0;
            std::memcpy(&size, content, sizeof size);
            arrival.segment_bytes = static_cast<std::size_t>(std::max(size, 1));
        } else if (entry->cmsg_level == IPPROTO_IP && entry->cmsg_type == IP_TOS) {
            arrival.ecn = *content & kEcnBits;
        } else if (entry->cmsg_level == IPPROTO_IPV6 && entry->cmsg_type == IPV6_TCLASS) {
            int value = 0;
            std::memcpy(&value, content, sizeof value);
            arrival.ecn = static_cast<std::uint8_t>(value) & kEcnBits;
        } else if (entry->cmsg_level == IPPROTO_IP && entry->cmsg_type == IP_PKTINFO) {
            in_pktinfo target{};
            std::memcpy(&target, content, sizeof target);
            sockaddr_in local = bound_.v4();
            local.sin_addr = target.ipi_addr;
            arrival.path.local = Address(local);
        } else if (entry->cmsg_level == IPPROTO_IPV6 && entry->cmsg_type == IPV6_PKTINFO) {
            in6_pktinfo target{};
            std::memcpy(&target, content, sizeof target);
            sockaddr_in6 local = bound_.v6();
            local.sin6_addr = target.ipi6_addr;
            arrival.path.local = Address(local).unmapped();
        }
    }
    return arrival;
}

}  // namespace nexar::quic

#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "link/quic/udp_socket.hpp"

/// Socket messages with their control data. Only for the files of UdpSocket.
namespace nexar::quic {

/// A message for sendmsg(). It must not move after header() was called, which returns a pointer
/// into it.
struct OutMessage {
    OutMessage(const PacketBatch& batch, std::span<const std::byte> bytes,
               const UdpSocket::Habits& habits);
    OutMessage(const OutMessage&) = delete;
    OutMessage& operator=(const OutMessage&) = delete;
    OutMessage(OutMessage&&) = delete;

    /// Tells the kernel to cut the bytes into datagrams of this size.
    void segment(std::size_t bytes) noexcept;

    msghdr header{};

private:
    void* add(int level, int type, std::size_t bytes) noexcept;

    Address to_;
    Address name_;  // of to_, in the kernel's form
    iovec vector_{};
    alignas(cmsghdr) std::array<std::byte, 128> control_{};
};

/// Messages for sendmmsg().
struct UdpSocket::Sender {
    static constexpr std::size_t kAtOnce = 64;

    void set(std::size_t index, const PacketBatch& batch, std::span<const std::byte> bytes,
             const Habits& habits);
    /// Returns how many of the first `count` were sent; -1, with errno, if the first one failed.
    int send(int descriptor, std::size_t count);

private:
    std::array<std::optional<OutMessage>, kAtOnce> messages_;
    std::array<mmsghdr, kAtOnce> headers_{};
};

/// Buffers for recvmmsg(), and the result of the last call.
struct UdpSocket::Receiver {
    explicit Receiver(const UdpOptions& options);

    /// Returns how many messages were received; 0: none.
    std::size_t fetch(int descriptor, const Address& bound);
    /// True if the last call failed with an error, usually that of an earlier datagram.
    bool failed() const noexcept { return failed_; }
    Arrival arrival(std::size_t index) const;
    /// True if another call is worthwhile. A small message that arrived alone is usually the last
    /// one, and its receiver should not wait for another system call.
    bool more() const noexcept { return count_ == used_ && !alone_; }

private:
    struct Slot {
        sockaddr_storage from{};
        iovec vector{};
        alignas(cmsghdr) std::array<std::byte, 128> control{};
    };

    void prepare(std::size_t count);

    std::size_t slots_;
    std::unique_ptr<std::byte[]> memory_;
    std::vector<Slot> slot_;
    std::vector<mmsghdr> headers_;
    Address bound_{};
    std::size_t used_ = 0;   // slots offered
    std::size_t count_ = 0;  // messages received
    std::size_t next_ = 0;   // slots to offer
    bool alone_ = false;     // one message, a small one
    bool failed_ = false;
};

}  // namespace nexar::quic

#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "link/quic/udp_socket.hpp"

/// Socket messages with their control data. For the files of UdpSocket only.
namespace nexar::quic {

/// A message to sendmsg(); points to itself once header is used, so it stays where it is.
struct OutMessage {
    OutMessage(const PacketBatch& batch, std::span<const std::byte> bytes,
               const UdpSocket::Habits& habits);
    OutMessage(const OutMessage&) = delete;
    OutMessage& operator=(const OutMessage&) = delete;
    OutMessage(OutMessage&&) = delete;

    /// Lets the kernel cut the bytes into datagrams of this size.
    void segment(std::size_t bytes) noexcept;

    msghdr header{};

private:
    void* add(int level, int type, std::size_t bytes) noexcept;

    Address to_;
    Address name_;  // of to_, as the kernel wants it
    iovec vector_{};
    alignas(cmsghdr) std::array<std::byte, 128> control_{};
};

/// Messages to sendmmsg().
struct UdpSocket::Sender {
    static constexpr std::size_t kAtOnce = 64;

    void set(std::size_t index, const PacketBatch& batch, std::span<const std::byte> bytes,
             const Habits& habits);
    /// How many of the first `count` went; -1 with errno of the first.
    int send(int descriptor, std::size_t count);

private:
    std::array<std::optional<OutMessage>, kAtOnce> messages_;
    std::array<mmsghdr, kAtOnce> headers_{};
};

/// Buffers for recvmmsg(), and what the last call brought.
struct UdpSocket::Receiver {
    explicit Receiver(const UdpOptions& options);

    /// How many messages came; 0: none for now.
    std::size_t fetch(int descriptor, const Address& bound);
    /// Whether nothing came because of an error: that of an earlier datagram, as a rule.
    bool failed() const noexcept { return failed_; }
    Arrival arrival(std::size_t index) const;
    /// Whether it is worth to ask for more at once. A small one that came alone is mostly the last,
    /// and who waits for it should not wait for another call to the kernel.
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
    std::size_t count_ = 0;  // messages that came
    std::size_t next_ = 0;   // slots to offer
    bool alone_ = false;     // one message, a small one
    bool failed_ = false;
};

}  // namespace nexar::quic

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "support/udp_fault/address.hpp"

namespace nexar::udp_fault {

/// Maximum payload of a UDP datagram over IPv6; over IPv4 it is 65507.
inline constexpr std::size_t kMaxDatagram = 65527;

/// How many datagrams one system call moves.
inline constexpr std::size_t kBatch = 64;

/// Owns a file descriptor.
class Descriptor {
public:
    Descriptor() noexcept = default;
    explicit Descriptor(int value) noexcept : value_(value) {}
    Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor();

    int value() const noexcept { return value_; }
    bool valid() const noexcept { return value_ >= 0; }

private:
    int value_ = -1;
};

/// The error of a system call that just failed; `doing` describes it: "bind 127.0.0.1:7000".
Error system_failure(std::string_view doing);

/// One received datagram, or one to send. Refers to memory that it does not own.
struct Parcel {
    std::span<const std::byte> bytes{};
    Address peer{};  // when sending: the destination, unless the socket is connected
    std::uint8_t ecn = 0;
};

/// The buffers for one receive call. Large (4 MiB), so create one and use it for every socket.
class ReceiveBatch {
public:
    ReceiveBatch();

    /// The datagrams of the last receive(); valid until the next one.
    std::span<const Parcel> parcels() const noexcept { return {parcels_.data(), filled_}; }

private:
    friend class UdpSocket;

    std::unique_ptr<std::array<std::array<std::byte, kMaxDatagram>, kBatch>> memory_;
    std::array<Parcel, kBatch> parcels_{};
    std::size_t filled_ = 0;
};

/// A non-blocking UDP socket that carries the ECN bits. Not thread-safe.
class UdpSocket {
public:
    /// Bound to `local`, whose port may be 0. Requests large buffers, but accepts smaller ones.
    static Result<UdpSocket> bind(const Address& local);
    /// Bound to `local`, if that is an address, and connected: receives only from `target`.
    static Result<UdpSocket> connect(const Address& local, const Address& target);

    int descriptor() const noexcept { return descriptor_.value(); }
    const Address& local() const noexcept { return local_; }

    /// Receives the waiting datagrams, up to a batch; false if there were none. Does not report
    /// that a peer's port is closed (an ICMP answer to an earlier datagram).
    bool receive(ReceiveBatch& batch);

    /// Sends in order and returns how many the kernel accepted. The others are lost: too large for
    /// the interface, no route, no buffer.
    std::size_t send(std::span<const Parcel> parcels);

    /// Datagrams that the kernel dropped because they were not received in time.
    std::uint64_t missed() const;

private:
    struct Outgoing;

    static Result<UdpSocket> make(int family);
    std::size_t send_batch(std::span<const Parcel> parcels);
    Result<void> bind_to(const Address& local);
    Result<void> learn_local();

    Descriptor descriptor_;
    Address local_{};
    int family_ = AF_UNSPEC;
    bool connected_ = false;
};

}  // namespace nexar::udp_fault

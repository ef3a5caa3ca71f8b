#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <span>

#include "base/descriptor.hpp"
#include "port/stream.hpp"

/// Unix sockets between the processes of one host: they carry the handshake and the descriptors of
/// shared memory, ring the bell of a sleeping peer, and report when its process has ended. None of
/// these functions blocks.
namespace nexar::shm {

/// An abstract name: it is in no file system, and only processes in the same network namespace can
/// connect to it.
using SocketName = std::array<std::byte, 16>;

Result<Descriptor> listen_at(const SocketName& name);
/// A descriptor of -1 if the listener's backlog is full: try again later.
Result<Descriptor> connect_to(const SocketName& name);
/// A descriptor of -1 if nobody has connected.
Descriptor accept_from(int listener) noexcept;

/// The process at the other end of a connected socket.
struct Credentials {
    uid_t user = 0;
    pid_t process = 0;  // 0: in another pid namespace
};
Result<Credentials> peer_credentials(int socket);

/// Becomes readable when that process ends, even if a child of it still has its sockets. A
/// descriptor of -1 if the kernel does not let us watch it.
Descriptor watch_process(pid_t process) noexcept;

struct Message {
    static constexpr std::size_t kMaxBytes = 128;
    /// One is all that a message may have; the kernel's padding has room for a second one.
    static constexpr std::size_t kMaxDescriptors = 2;

    std::array<std::byte, kMaxBytes> bytes{};
    std::size_t size = 0;
    std::array<Descriptor, kMaxDescriptors> descriptors{};
    std::size_t descriptor_count = 0;
    bool truncated = false;  // there were more bytes or descriptors than a message may have

    port::ConstBytes content() const noexcept { return port::ConstBytes(bytes).first(size); }
};

enum class Received : std::uint8_t { message, nothing, closed };
/// Overwrites `out`, and closes the descriptors that it had.
Received receive_message(int socket, Message& out) noexcept;

enum class Sent : std::uint8_t { sent, full, closed };
/// `descriptor` -1: none.
Sent send_message(int socket, port::ConstBytes bytes, int descriptor = -1) noexcept;

/// One byte that makes the peer's socket readable. If the socket is full, it is readable anyway.
void ring_bell(int socket) noexcept;

}  // namespace nexar::shm

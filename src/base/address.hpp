#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <span>
#include <string>
#include <string_view>

namespace nexar {

/// The source or destination of a datagram: an IPv4 or IPv6 address and a port. A value type that
/// makes no system calls. The default is 0.0.0.0:0, "any".
class Address {
public:
    Address() noexcept
        : Address(
              sockaddr_in{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}}) {}
    explicit Address(const sockaddr_in& v4) noexcept : storage_{.v4 = v4} {}
    explicit Address(const sockaddr_in6& v6) noexcept : storage_{.v6 = v6} {}

    /// 0.0.0.0:0 or [::]:0.
    static Address any(bool v6) noexcept;

    /// A peer to which other members relay packets, named by its node id. No socket has such an
    /// address, and parse() never returns one.
    static Address tunnel(const std::array<std::byte, 16>& node) noexcept;
    bool is_tunnel() const noexcept;
    /// The node id of a tunnel.
    std::array<std::byte, 16> tunnel_end() const noexcept;

    /// "127.0.0.1:7400" or "[::1]:7400"; numbers only, no host names. Fails with
    /// Errc::invalid_argument, which quotes the text.
    static Result<Address> parse(std::string_view text);

    /// An address from the kernel. Fails with Errc::invalid_argument unless `bytes` is the size of
    /// an IPv4 or IPv6 socket address.
    static Result<Address> from_native(const sockaddr* address, socklen_t bytes);

    /// The form that parse() reads; "a tunnel to node 0123..." for a tunnel.
    std::string text() const;

    bool is_v6() const noexcept { return storage_.any.sa_family == AF_INET6; }
    bool is_loopback() const noexcept;
    /// 0.0.0.0 or ::
    bool is_any() const noexcept;

    std::uint16_t port() const noexcept;
    Address with_port(std::uint16_t port) const noexcept;
    /// The same host; ports are not compared.
    bool same_host(const Address& other) const noexcept;

    /// Converts to and from the form in which a dual-stack IPv6 socket represents an IPv4 address
    /// (RFC 4291 2.5.5.2). Other addresses are returned unchanged.
    Address mapped() const noexcept;
    Address unmapped() const noexcept;

    /// The network for per-sender limits: the /24 of an IPv4 address, the /56 of an IPv6 address.
    std::array<std::byte, 8> prefix() const noexcept;

    const sockaddr* native() const noexcept { return &storage_.any; }
    sockaddr* native() noexcept { return &storage_.any; }
    socklen_t native_size() const noexcept {
        return is_v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    }
    const sockaddr_in& v4() const noexcept { return storage_.v4; }
    const sockaddr_in6& v6() const noexcept { return storage_.v6; }

    /// Compares family, address, port, and the scope of a link-local IPv6 address.
    friend bool operator==(const Address& a, const Address& b) noexcept {
        return a.same_host(b) && a.port() == b.port();
    }

private:
    // sa_family, the first field of every member, says which member is active.
    union Storage {
        sockaddr any;
        sockaddr_in v4;
        sockaddr_in6 v6;
    };

    Storage storage_;
};

}  // namespace nexar

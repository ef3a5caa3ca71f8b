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

/// Where a datagram comes from or goes to: an IPv4 or IPv6 address and a port. A value; makes no
/// system call. The default one is 0.0.0.0:0, "any".
class Address {
public:
    Address() noexcept
        : Address(
              sockaddr_in{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {}, .sin_zero = {}}) {}
    explicit Address(const sockaddr_in& v4) noexcept : storage_{.v4 = v4} {}
    explicit Address(const sockaddr_in6& v6) noexcept : storage_{.v6 = v6} {}

    /// 0.0.0.0:0 or [::]:0.
    static Address any(bool v6) noexcept;

    /// "127.0.0.1:7400" or "[::1]:7400"; numbers only, no names. Errc::invalid_argument says what
    /// is wrong with the text.
    static Result<Address> parse(std::string_view text);

    /// What the kernel gave. `bytes` other than a whole IPv4 or IPv6 socket address is
    /// Errc::invalid_argument.
    static Result<Address> from_native(const sockaddr* address, socklen_t bytes);

    /// As parse() reads it.
    std::string text() const;

    bool is_v6() const noexcept { return storage_.any.sa_family == AF_INET6; }
    bool is_loopback() const noexcept;
    /// 0.0.0.0 or ::
    bool is_any() const noexcept;

    std::uint16_t port() const noexcept;
    Address with_port(std::uint16_t port) const noexcept;
    /// The same host; ports are not compared.
    bool same_host(const Address& other) const noexcept;

    /// How a socket of IPv6 that serves both names an IPv4 address (RFC 4291 2.5.5.2), and back;
    /// any other address stays as it is.
    Address mapped() const noexcept;
    Address unmapped() const noexcept;

    /// The network that a sender is counted with: /24 of IPv4, /56 of IPv6.
    std::array<std::byte, 8> prefix() const noexcept;

    const sockaddr* native() const noexcept { return &storage_.any; }
    sockaddr* native() noexcept { return &storage_.any; }
    socklen_t native_size() const noexcept {
        return is_v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    }
    const sockaddr_in& v4() const noexcept { return storage_.v4; }
    const sockaddr_in6& v6() const noexcept { return storage_.v6; }

    /// Family, address, port, and the scope of a link-local IPv6 address.
    friend bool operator==(const Address& a, const Address& b) noexcept {
        return a.same_host(b) && a.port() == b.port();
    }

private:
    // Which member is active is told by sa_family, which all of them begin with.
    union Storage {
        sockaddr any;
        sockaddr_in v4;
        sockaddr_in6 v6;
    };

    Storage storage_;
};

}  // namespace nexar

#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nexar/result.hpp>
#include <string>
#include <string_view>

namespace nexar::udp_fault {

/// An IPv4 or IPv6 address with a port, in the form of the socket calls. Default: no address.
struct Address {
    sockaddr_storage storage{};
    socklen_t length = 0;

    /// "127.0.0.1:7000", "[::1]:7000", "[fe80::1%eth0]:7000". Numbers only, no host names.
    static Result<Address> parse(std::string_view text);

    static Address loopback_v4(std::uint16_t port = 0);
    static Address loopback_v6(std::uint16_t port = 0);

    int family() const noexcept { return storage.ss_family; }
    std::uint16_t port() const noexcept;
    Address with_port(std::uint16_t port) const noexcept;

    sockaddr* raw() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
    const sockaddr* raw() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }

    /// The bytes in use, for comparison.
    std::string_view bytes() const noexcept {
        return {reinterpret_cast<const char*>(&storage), length};
    }
    bool operator==(const Address& other) const noexcept { return bytes() == other.bytes(); }
};

/// The form that parse() reads.
std::string describe(const Address& address);

}  // namespace nexar::udp_fault

template <>
struct std::hash<nexar::udp_fault::Address> {
    std::size_t operator()(const nexar::udp_fault::Address& address) const noexcept {
        return std::hash<std::string_view>{}(address.bytes());
    }
};

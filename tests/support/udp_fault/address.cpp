#include "support/udp_fault/address.hpp"

#include <fmt/format.h>
#include <netdb.h>

#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "base/assert.hpp"
#include "base/printable.hpp"

namespace nexar::udp_fault {

namespace {

Error not_an_address(std::string_view text) {
    return {Errc::invalid_argument,
            fmt::format("{} is not an address with a port; write it as 127.0.0.1:7000 or "
                        "[::1]:7000 (port 0 to 65535, no host names)",
                        in_quotes(text))};
}

bool is_port(std::string_view text) noexcept {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    return error == std::errc() && end == text.data() + text.size();
}

struct HostAndPort {
    std::string host;
    std::string port;
    int family = AF_UNSPEC;
};

/// The two sides of the last colon; an IPv6 host must be in brackets, since it contains colons.
std::optional<HostAndPort> take_apart(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || !is_port(text.substr(colon + 1))) return {};
    std::string_view host = text.substr(0, colon);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    return HostAndPort{.host = std::string(host),
                       .port = std::string(text.substr(colon + 1)),
                       .family = bracketed ? AF_INET6 : AF_INET};
}

Address from(const void* socket_address, socklen_t length) {
    Address address;
    NEXAR_ASSERT(length <= sizeof address.storage);
    std::memcpy(&address.storage, socket_address, length);
    address.length = length;
    return address;
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
    const auto parts = take_apart(text);
    if (!parts) return not_an_address(text);
    addrinfo hints{};
    hints.ai_family = parts->family;
    hints.ai_socktype = SOCK_DGRAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (::getaddrinfo(parts->host.c_str(), parts->port.c_str(), &hints, &found) != 0) {
        return not_an_address(text);
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    return from(found->ai_addr, found->ai_addrlen);
}

Address Address::loopback_v4(std::uint16_t port) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return from(&in, sizeof in);
}

Address Address::loopback_v6(std::uint16_t port) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    in.sin6_addr = in6addr_loopback;
    return from(&in, sizeof in);
}

// sin_port and sin6_port are at the same place in both structures.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));

std::uint16_t Address::port() const noexcept {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    return ntohs(in.sin_port);
}

Address Address::with_port(std::uint16_t port) const noexcept {
    Address other = *this;
    const in_port_t in_network_order = htons(port);
    std::memcpy(reinterpret_cast<char*>(&other.storage) + offsetof(sockaddr_in, sin_port),
                &in_network_order, sizeof in_network_order);
    return other;
}

std::string describe(const Address& address) {
    std::array<char, NI_MAXHOST> host{};
    if (::getnameinfo(address.raw(), address.length, host.data(), host.size(), nullptr, 0,
                      NI_NUMERICHOST) != 0) {
        return "(no address)";
    }
    if (address.family() == AF_INET6) return fmt::format("[{}]:{}", host.data(), address.port());
    return fmt::format("{}:{}", host.data(), address.port());
}

}  // namespace nexar::udp_fault

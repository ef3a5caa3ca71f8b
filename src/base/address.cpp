#include "base/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "base/assert.hpp"
#include "base/identity.hpp"
#include "base/printable.hpp"

namespace nexar {

namespace {

/// Sets tunnels apart from addresses of sockets: no network interface has this number.
constexpr std::uint32_t kTunnelScope = 0xffff'ffff;

Error not_an_address(std::string_view text) {
    return {Errc::invalid_argument, fmt::format("{} is not an address; write it as 10.0.0.7:7400 "
                                                "or [fe80::1]:7400, with a port from 0 to 65535",
                                                in_quotes(text))};
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return {};
    return port;
}

}  // namespace

Address Address::any(bool v6) noexcept {
    if (!v6) return {};
    sockaddr_in6 everything{};
    everything.sin6_family = AF_INET6;
    return Address(everything);
}

Address Address::tunnel(const std::array<std::byte, 16>& node) noexcept {
    sockaddr_in6 end{};
    end.sin6_family = AF_INET6;
    end.sin6_scope_id = kTunnelScope;
    std::memcpy(&end.sin6_addr, node.data(), node.size());
    return Address(end);
}

bool Address::is_tunnel() const noexcept {
    return is_v6() && port() == 0 && storage_.v6.sin6_scope_id == kTunnelScope;
}

std::array<std::byte, 16> Address::tunnel_end() const noexcept {
    NEXAR_ASSERT(is_tunnel());
    std::array<std::byte, 16> node{};
    std::memcpy(node.data(), &storage_.v6.sin6_addr, node.size());
    return node;
}

Result<Address> Address::parse(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return not_an_address(text);
    const auto port = parse_port(text.substr(colon + 1));
    if (!port) return not_an_address(text);

    const std::string host(text.substr(0, colon));
    if (host.find('\0') != std::string::npos) return not_an_address(text);  // inet_pton stops there
    if (host.starts_with('[') && host.ends_with(']')) {
        sockaddr_in6 v6{};
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(*port);
        if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6.sin6_addr) != 1) {
            return not_an_address(text);
        }
        return Address(v6);
    }
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(*port);
    if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1) return not_an_address(text);
    return Address(v4);
}

Result<Address> Address::from_native(const sockaddr* address, socklen_t bytes) {
    if (bytes >= sizeof(sockaddr_in) && address->sa_family == AF_INET) {
        sockaddr_in v4{};
        std::memcpy(&v4, address, sizeof v4);
        return Address(v4);
    }
    if (bytes >= sizeof(sockaddr_in6) && address->sa_family == AF_INET6) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, address, sizeof v6);
        return Address(v6);
    }
    return Error(Errc::invalid_argument,
                 fmt::format("a socket address of {} bytes is neither IPv4 nor IPv6", bytes));
}

std::string Address::text() const {
    if (is_tunnel()) return "a tunnel to node " + detail::hex_digits(tunnel_end());
    std::array<char, INET6_ADDRSTRLEN> host{};
    if (is_v6()) {
        inet_ntop(AF_INET6, &storage_.v6.sin6_addr, host.data(), host.size());
        return fmt::format("[{}]:{}", host.data(), port());
    }
    inet_ntop(AF_INET, &storage_.v4.sin_addr, host.data(), host.size());
    return fmt::format("{}:{}", host.data(), port());
}

bool Address::is_loopback() const noexcept {
    if (is_v6()) return IN6_IS_ADDR_LOOPBACK(&storage_.v6.sin6_addr) != 0;
    return ntohl(storage_.v4.sin_addr.s_addr) >> 24 == 127;
}

bool Address::is_any() const noexcept {
    if (is_v6()) return IN6_IS_ADDR_UNSPECIFIED(&storage_.v6.sin6_addr) != 0;
    return storage_.v4.sin_addr.s_addr == 0;
}

std::uint16_t Address::port() const noexcept {
    return ntohs(is_v6() ? storage_.v6.sin6_port : storage_.v4.sin_port);
}

Address Address::with_port(std::uint16_t port) const noexcept {
    Address other = *this;
    if (is_v6()) {
        other.storage_.v6.sin6_port = htons(port);
    } else {
        other.storage_.v4.sin_port = htons(port);
    }
    return other;
}

bool Address::same_host(const Address& other) const noexcept {
    if (is_v6() != other.is_v6()) return false;
    if (!is_v6()) return storage_.v4.sin_addr.s_addr == other.storage_.v4.sin_addr.s_addr;
    const auto& a = storage_.v6;
    const auto& b = other.storage_.v6;
    return std::memcmp(&a.sin6_addr, &b.sin6_addr, sizeof a.sin6_addr) == 0 &&
           a.sin6_scope_id == b.sin6_scope_id;
}

Address Address::mapped() const noexcept {
    if (is_v6()) return *this;
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = storage_.v4.sin_port;
    v6.sin6_addr.s6_addr[10] = 0xff;
    v6.sin6_addr.s6_addr[11] = 0xff;
    std::memcpy(&v6.sin6_addr.s6_addr[12], &storage_.v4.sin_addr, 4);
    return Address(v6);
}

Address Address::unmapped() const noexcept {
    if (!is_v6() || IN6_IS_ADDR_V4MAPPED(&storage_.v6.sin6_addr) == 0) return *this;
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = storage_.v6.sin6_port;
    std::memcpy(&v4.sin_addr, &storage_.v6.sin6_addr.s6_addr[12], 4);
    return Address(v4);
}

std::array<std::byte, 8> Address::prefix() const noexcept {
    std::array<std::byte, 8> network{};
    if (is_v6()) {
        std::memcpy(network.data(), &storage_.v6.sin6_addr, 7);
    } else {
        std::memcpy(network.data(), &storage_.v4.sin_addr, 3);
        network.back() = std::byte{4};  // sets it apart from every IPv6 network
    }
    return network;
}

}  // namespace nexar

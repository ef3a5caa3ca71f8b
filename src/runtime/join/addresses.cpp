#include "runtime/join/addresses.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "base/printable.hpp"
#include "base/try.hpp"
#include "security/join_string.hpp"
#include "wire/limits.hpp"

namespace nexar::runtime {

namespace {

bool of_one_link(const Address& address) noexcept {
    return address.is_v6() && IN6_IS_ADDR_LINKLOCAL(&address.v6().sin6_addr) != 0;
}

std::vector<Address> interface_addresses(std::uint16_t port, bool v4, bool v6) {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return {};
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, ::freeifaddrs);
    std::vector<Address> addresses;
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
        const bool is_v6 = at->ifa_addr->sa_family == AF_INET6;
        if (!is_v6 && at->ifa_addr->sa_family != AF_INET) continue;
        if (is_v6 ? !v6 : !v4) continue;
        const auto address =
            Address::from_native(at->ifa_addr, is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
        if (!address || of_one_link(*address)) continue;
        addresses.push_back(address->with_port(port));
    }
    return addresses;
}

}  // namespace

std::vector<Address> reachable_addresses(const Address& bound) {
    if (!bound.is_any()) return {bound};
    const auto all = interface_addresses(bound.port(), true, bound.is_v6());
    std::vector<Address> addresses;
    for (const bool loopback : {false, true}) {
        std::ranges::copy_if(all, std::back_inserter(addresses), [&](const Address& address) {
            return address.is_loopback() == loopback;
        });
    }
    // A host with too many addresses keeps its loopback, the best one for peers on the same host.
    while (addresses.size() > wire::kMaxAddresses) {
        addresses.erase(addresses.begin() + wire::kMaxAddresses - 2);
    }
    return addresses;
}

Result<std::vector<Address>> resolve(const std::string& host_port) {
    if (const auto numbers = Address::parse(host_port)) return std::vector{*numbers};
    NEXAR_TRY_VALUE(parts, security::HostPort::parse(host_port));
    const addrinfo hints{.ai_flags = AI_ADDRCONFIG,
                         .ai_family = AF_UNSPEC,
                         .ai_socktype = SOCK_DGRAM,
                         .ai_protocol = 0,
                         .ai_addrlen = 0,
                         .ai_addr = nullptr,
                         .ai_canonname = nullptr,
                         .ai_next = nullptr};
    addrinfo* list = nullptr;
    const int code = ::getaddrinfo(parts.host.c_str(), nullptr, &hints, &list);
    // Small containers have no hosts file: localhost means the loopback even there (RFC 6761, 6.3).
    if (code != 0 && parts.host == "localhost") {
        NEXAR_TRY_VALUE(loopback, Address::parse(fmt::format("127.0.0.1:{}", parts.port)));
        return std::vector{loopback};
    }
    if (code != 0) {
        return Error(Errc::bad_config,
                     fmt::format("the host name {} of the seed cannot be resolved: {}; give its "
                                 "numeric address instead",
                                 in_quotes(parts.host), ::gai_strerror(code)));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, ::freeaddrinfo);
    std::vector<Address> addresses;
    for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
        const auto address = Address::from_native(at->ai_addr, at->ai_addrlen);
        if (address) addresses.push_back(address->with_port(parts.port));
    }
    return addresses;
}

std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
    return printable(name.data(), wire::kMaxHostBytes);
}

}  // namespace nexar::runtime

#include "base/address_order.hpp"

#include <algorithm>
#include <iterator>

namespace nexar {

namespace {

bool near(const Address& a, const Address& b) noexcept {
    return a.is_v6() == b.is_v6() && a.prefix() == b.prefix();
}

bool is_one_of(const Address& address, std::span<const Address> own) {
    return !address.is_loopback() &&
           std::ranges::any_of(own, [&](const Address& one) { return one.same_host(address); });
}

// One equal address proves nothing: many hosts have the same one, such as a container bridge's.
bool most_are_shared(std::span<const Address> addresses, std::span<const Address> own) {
    const auto shared = std::ranges::count_if(
        addresses, [&](const Address& address) { return is_one_of(address, own); });
    const auto foreign = std::ranges::count_if(addresses, [&](const Address& address) {
        return !address.is_loopback() && !is_one_of(address, own);
    });
    return shared > foreign;
}

}  // namespace

bool seem_to_share_host(std::span<const Address> addresses, std::span<const Address> own) {
    return most_are_shared(addresses, own) ||
           std::ranges::all_of(addresses, [](const Address& one) { return one.is_loopback(); });
}

std::vector<Address> best_first(std::span<const Address> addresses, std::span<const Address> own) {
    const bool same_host = most_are_shared(addresses, own);
    const auto worth = [&](const Address& address) {
        if (address.is_loopback()) return same_host ? 0 : 3;
        if (is_one_of(address, own))
            return same_host ? 1 : 4;  // the peer is on another host: this address leads back here
        const auto close = [&](const Address& one) { return near(one, address); };
        return std::ranges::any_of(own, close) ? 1 : 2;
    };
    std::vector<Address> ordered;
    for (int wanted = 0; wanted <= 4; ++wanted) {
        std::ranges::copy_if(addresses, std::back_inserter(ordered),
                             [&](const Address& address) { return worth(address) == wanted; });
    }
    return ordered;
}

}  // namespace nexar

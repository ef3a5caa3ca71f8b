#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "support/udp_fault/proxy.hpp"
#include "udp_host.hpp"

namespace nexar::udp_fault {

/// `size` letters that depend on position and `salt`.
inline std::string letters(std::size_t size, std::size_t salt) {
    std::string text(size, ' ');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('!' + (i * 31 + salt) % 90);
    return text;
}

inline Proxy started(const UdpHost& target, ProxyOptions options = {}) {
    options.target = target.address();
    auto proxy = Proxy::start(options);
    if (!proxy) throw Error(proxy.error());
    return std::move(*proxy);
}

inline void expect_round_trip(UdpHost& client, const Proxy& proxy, UdpHost& server) {
    client.send(proxy.address(), "ping");
    const auto ping = server.receive();
    ASSERT_TRUE(ping.has_value());
    EXPECT_EQ(ping->text, "ping");
    server.send(ping->from, "pong");
    const auto pong = client.receive();
    ASSERT_TRUE(pong.has_value());
    EXPECT_EQ(pong->text, "pong");
    EXPECT_EQ(pong->from, proxy.address());
}

}  // namespace nexar::udp_fault

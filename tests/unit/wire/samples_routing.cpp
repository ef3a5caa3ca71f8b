#include <algorithm>

#include "samples.hpp"

/// Samples of the messages by which members reach members that they are not connected to.
namespace nexar::wire::testing {

namespace {

Rank random_view_rank(Random& random) {
    return Rank(static_cast<std::uint32_t>(random.number(0, kMaxRank)));
}

template <std::size_t N>
void fill_from(std::array<std::byte, N>& bytes, unsigned first) {
    for (std::size_t i = 0; i < N; ++i) bytes[i] = static_cast<std::byte>(first + i);
}

}  // namespace

template <>
EnvelopeFrame random_message<EnvelopeFrame>(Random& random) {
    EnvelopeFrame m;
    m.source = random_view_rank(random);
    do m.target = random_view_rank(random);
    while (m.target == m.source);
    m.hops = static_cast<std::uint8_t>(random.number(1, kMaxHops));
    m.part = static_cast<std::uint8_t>(random.below(3));
    m.choice = static_cast<std::uint16_t>(random.number(0, 0xffff));
    m.number = static_cast<std::uint32_t>(random.number(0, ~0U));
    m.packet = random.bytes(random.below(64) == 0 ? kMaxPacketBytes - 1 : 100);
    m.packet.push_back(std::byte{0x40});  // never empty
    return m;
}

template <>
EnvelopeFrame example<EnvelopeFrame>() {
    EnvelopeFrame m;
    m.source = Rank(3);
    m.target = Rank(12);
    m.hops = 64;
    m.part = kLastPart;
    m.choice = 258;
    m.number = 7;
    m.packet = from_hex("c5");  // one byte, so that no shorter frame is valid
    return m;
}

template <>
LinkState random_message<LinkState>(Random& random) {
    LinkState m{.origin = random_view_rank(random),
                .incarnation = random.number(0, ~std::uint64_t{0}),
                .epoch = Epoch(random.number(1, ~std::uint64_t{0})),
                .version = random.number(1, ~std::uint64_t{0})};
    for (std::uint64_t i = random.number(0, kMaxDownLinks); i > 0; --i) {
        m.down.push_back(random_view_rank(random));
    }
    std::ranges::sort(m.down);
    const auto same = std::ranges::unique(m.down);
    m.down.erase(same.begin(), same.end());
    std::erase(m.down, m.origin);
    for (std::byte& byte : m.key) byte = static_cast<std::byte>(random.below(256));
    for (std::byte& byte : m.signature) byte = static_cast<std::byte>(random.below(256));
    return m;
}

template <>
LinkState example<LinkState>() {
    LinkState m{.origin = Rank(3),
                .incarnation = 6,
                .epoch = Epoch(5),
                .version = 9,
                .down = {Rank(2), Rank(12)}};
    fill_from(m.key, 0x20);
    fill_from(m.signature, 0x80);
    return m;
}

template <>
PathRequest random_message<PathRequest>(Random& random) {
    return {.direct = random.coin()};
}

template <>
PathRequest example<PathRequest>() {
    return {.direct = true};
}

}  // namespace nexar::wire::testing

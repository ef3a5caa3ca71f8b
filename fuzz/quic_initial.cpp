#include "quic_initial.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/assert.hpp"
#include "link/quic/key_schedule.hpp"
#include "link/quic/packet_cipher.hpp"

namespace nexar::fuzz {

namespace {

using quic::CipherSuite;
using quic::PacketCipher;
using Octets = std::vector<std::uint8_t>;

constexpr std::size_t kLeastDatagram = 1200;
constexpr std::size_t kNumberBytes = 4;
constexpr std::array<std::uint8_t, 8> kTo = {0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08};
constexpr std::array<std::uint8_t, 8> kFrom = {1, 2, 3, 4, 5, 6, 7, 8};

Octets nonce_of(const quic::PacketKeys& keys, std::span<const std::uint8_t> number) {
    Octets nonce(keys.iv.begin(), keys.iv.end());
    for (std::size_t i = 0; i < number.size(); ++i) {
        nonce[nonce.size() - number.size() + i] ^= number[i];
    }
    return nonce;
}

/// Masks or unmasks the packet number at `at` and the low bits of the first byte.
void mask_header(const quic::PacketKeys& keys, Octets& packet, std::size_t at,
                 std::size_t number_bytes) {
    quic::HeaderMask mask(CipherSuite::aes_128_gcm, keys.header_key_span());
    std::array<std::uint8_t, quic::kMaskBytes> bits{};
    const auto sample = std::span(packet).subspan(at + 4).first<quic::kSampleBytes>();
    NEXAR_ASSERT(mask.make(bits, sample));
    packet[0] = static_cast<std::uint8_t>(packet[0] ^ (bits[0] & 0x0fU));
    if (number_bytes == 0) number_bytes = (packet[0] & 3U) + 1U;
    for (std::size_t i = 0; i < number_bytes; ++i) packet[at + i] ^= bits[1 + i];
}

/// Reads a variable-length integer, RFC 9000 16.
std::optional<std::uint64_t> read_number(std::span<const std::uint8_t> packet, std::size_t& at) {
    if (at >= packet.size()) return std::nullopt;
    const std::size_t size = std::size_t{1} << (packet[at] >> 6U);
    if (packet.size() - at < size) return std::nullopt;
    std::uint64_t value = packet[at] & 0x3fU;
    for (std::size_t i = 1; i < size; ++i) value = value << 8U | packet[at + i];
    at += size;
    return value;
}

}  // namespace

Bytes seal_initial(std::span<const std::byte> frames) {
    const auto keys =
        quic::derive_keys(CipherSuite::aes_128_gcm, quic::initial_secrets(kTo).client);
    Octets packet = {0xc3, 0, 0, 0, 1, kTo.size()};
    packet.insert(packet.end(), kTo.begin(), kTo.end());
    packet.push_back(kFrom.size());
    packet.insert(packet.end(), kFrom.begin(), kFrom.end());
    packet.push_back(0);  // no token
    constexpr std::size_t kAround = 2 + kNumberBytes + quic::kTagBytes;
    const std::size_t least = kLeastDatagram - std::min(kLeastDatagram, packet.size() + kAround);
    Octets plain(std::max(least, frames.size()));
    std::ranges::transform(frames, plain.begin(),
                           [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
    const std::size_t length = kNumberBytes + plain.size() + quic::kTagBytes;
    packet.push_back(static_cast<std::uint8_t>(0x40U | length >> 8U));
    packet.push_back(static_cast<std::uint8_t>(length));
    const std::size_t at = packet.size();
    packet.resize(at + kNumberBytes);

    const Octets header = packet;
    packet.resize(header.size() + plain.size() + quic::kTagBytes);
    PacketCipher cipher(CipherSuite::aes_128_gcm, PacketCipher::Direction::seal, keys.key_span());
    const Octets nonce = nonce_of(keys, std::array<std::uint8_t, kNumberBytes>{});
    NEXAR_ASSERT(cipher.seal(packet.data() + header.size(), plain, nonce, header));
    mask_header(keys, packet, at, kNumberBytes);
    const auto bytes = std::as_bytes(std::span(packet));
    return {bytes.begin(), bytes.end()};
}

std::optional<Bytes> open_initial(std::span<const std::byte> datagram) {
    Octets packet(datagram.size());
    std::ranges::transform(datagram, packet.begin(),
                           [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
    if (packet.size() < kLeastDatagram || (packet[0] & 0xf0U) != 0xc0U) return std::nullopt;
    const std::span<const std::uint8_t> to(packet.data() + 6, packet[5]);
    std::size_t at = 6 + to.size();
    at += 1U + packet[at];
    const auto token = read_number(packet, at);
    if (!token || *token > packet.size()) return std::nullopt;
    at += static_cast<std::size_t>(*token);
    const auto length = read_number(packet, at);
    if (!length || *length > packet.size() - at) return std::nullopt;
    packet.resize(at + static_cast<std::size_t>(*length));

    const auto keys = quic::derive_keys(CipherSuite::aes_128_gcm, quic::initial_secrets(to).client);
    mask_header(keys, packet, at, 0);
    const std::size_t body = at + (packet[0] & 3U) + 1U;
    const Octets nonce = nonce_of(keys, std::span(packet).subspan(at, body - at));
    Octets plain(packet.size() - body - quic::kTagBytes);
    PacketCipher cipher(CipherSuite::aes_128_gcm, PacketCipher::Direction::open, keys.key_span());
    const std::span<const std::uint8_t> all(packet);
    if (!cipher.open(plain.data(), all.subspan(body), nonce, all.first(body))) return std::nullopt;
    const auto bytes = std::as_bytes(std::span(plain));
    return Bytes(bytes.begin(), bytes.end());
}

}  // namespace nexar::fuzz

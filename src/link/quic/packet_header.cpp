#include "link/quic/packet_header.hpp"

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>

#include <algorithm>

#include "base/assert.hpp"
#include "link/quic/native.hpp"

namespace nexar::quic {

namespace {

constexpr Duration kRetryTokenLife = std::chrono::seconds(10);

std::span<const std::uint8_t> octets(std::span<const std::byte> bytes) noexcept {
    return {native(bytes.data()), bytes.size()};
}

}  // namespace

AnyCid::AnyCid(std::span<const std::uint8_t> from) noexcept : size(from.size()) {
    NEXAR_ASSERT(size <= kMaxBytes);
    std::ranges::copy(from, bytes.begin());
}

std::optional<PacketTarget> decode_target(std::span<const std::byte> packet) noexcept {
    if (packet.empty()) return std::nullopt;  // ngtcp2 asserts it
    ngtcp2_version_cid ids{};
    const int code =
        ngtcp2_pkt_decode_version_cid(&ids, native(packet.data()), packet.size(), LocalCid::kBytes);
    if (code != 0 && code != NGTCP2_ERR_VERSION_NEGOTIATION) return std::nullopt;
    if (ids.dcidlen > AnyCid::kMaxBytes || ids.scidlen > AnyCid::kMaxBytes) return std::nullopt;
    PacketTarget target;
    target.version = ids.version;
    target.to = AnyCid({ids.dcid, ids.dcidlen});
    target.from = AnyCid({ids.scid, ids.scidlen});
    const bool is_long = (std::to_integer<unsigned>(packet[0]) & 0x80U) != 0;
    if (code == NGTCP2_ERR_VERSION_NEGOTIATION) {
        target.kind = PacketTarget::Kind::other_version;
    } else {
        target.kind = is_long ? PacketTarget::Kind::long_header : PacketTarget::Kind::short_header;
    }
    return target;
}

std::optional<ClientHelloPacket> decode_client_hello(std::span<const std::byte> packet) noexcept {
    if (packet.empty()) return std::nullopt;
    ngtcp2_pkt_hd header{};
    if (ngtcp2_accept(&header, native(packet.data()), packet.size()) != 0) return std::nullopt;
    ClientHelloPacket hello;
    hello.version = header.version;
    hello.to = AnyCid({header.dcid.data, header.dcid.datalen});
    hello.from = AnyCid({header.scid.data, header.scid.datalen});
    if (header.tokenlen != 0) {
        hello.token = std::as_bytes(std::span(header.token, header.tokenlen));
    }
    return hello;
}

std::size_t write_version_negotiation(std::span<std::byte> out, const PacketTarget& to,
                                      std::uint8_t random) noexcept {
    constexpr std::array<std::uint32_t, 1> kVersions = {NGTCP2_PROTO_VER_V1};
    const auto size = ngtcp2_pkt_write_version_negotiation(
        native(out.data()), out.size(), random, to.from.bytes.data(), to.from.size,
        to.to.bytes.data(), to.to.size, kVersions.data(), kVersions.size());
    return size > 0 ? static_cast<std::size_t>(size) : 0;
}

std::size_t write_retry(std::span<std::byte> out, const ClientHelloPacket& to, const LocalCid& from,
                        const EndpointSecret& secret, const RetryQuestion& question) noexcept {
    const ngtcp2_cid retry_cid = native(AnyCid(from));
    const ngtcp2_cid first_cid = native(to.to);
    const ngtcp2_cid client_cid = native(to.from);
    std::array<std::uint8_t, NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN2> token{};
    const auto token_size = secret.reveal([&](std::span<const std::byte> key) {
        return ngtcp2_crypto_generate_retry_token2(
            token.data(), native(key.data()), key.size(), to.version, question.remote.native(),
            question.remote.native_size(), &retry_cid, &first_cid, native(question.now));
    });
    if (token_size < 0) return 0;
    const auto size = ngtcp2_crypto_write_retry(native(out.data()), out.size(), to.version,
                                                &client_cid, &retry_cid, &first_cid, token.data(),
                                                static_cast<std::size_t>(token_size));
    return size > 0 ? static_cast<std::size_t>(size) : 0;
}

bool verify_retry_token(ClientHelloPacket& hello, const EndpointSecret& secret,
                        const RetryQuestion& question) noexcept {
    const ngtcp2_cid to = native(hello.to);
    ngtcp2_cid before{};
    const auto token = octets(hello.token);
    const int code = secret.reveal([&](std::span<const std::byte> key) {
        return ngtcp2_crypto_verify_retry_token2(
            &before, token.data(), token.size(), native(key.data()), key.size(), hello.version,
            question.remote.native(), question.remote.native_size(), &to,
            static_cast<ngtcp2_duration>(kRetryTokenLife.count()), native(question.now));
    });
    if (code != 0) return false;
    hello.before_retry = AnyCid({before.data, before.datalen});
    return true;
}

bool has_retry_token(const ClientHelloPacket& hello) noexcept {
    return !hello.token.empty() &&
           std::to_integer<std::uint8_t>(hello.token.front()) == NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY2;
}

std::size_t write_stateless_reset(std::span<std::byte> out, const ResetToken& token,
                                  std::span<const std::uint8_t> random) noexcept {
    const auto size = ngtcp2_pkt_write_stateless_reset(native(out.data()), out.size(), token.data(),
                                                       random.data(), random.size());
    return size > 0 ? static_cast<std::size_t>(size) : 0;
}

ResetToken make_reset_token(const EndpointSecret& secret, const LocalCid& cid) noexcept {
    const ngtcp2_cid id = native(AnyCid(cid));
    ResetToken token{};
    const int code = secret.reveal([&](std::span<const std::byte> key) {
        return ngtcp2_crypto_generate_stateless_reset_token(token.data(), native(key.data()),
                                                            key.size(), &id);
    });
    NEXAR_ASSERT(code == 0);
    return token;
}

}  // namespace nexar::quic

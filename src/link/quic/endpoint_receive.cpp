#include <algorithm>
#include <array>
#include <cstring>

#include "link/quic/endpoint.hpp"

namespace nexar::quic {

namespace {

// RFC 9000 10.3: a reset must look like a packet and be smaller than the packet it answers, or two
// endpoints could answer each other forever.
constexpr std::size_t kLeastReset = 21;
constexpr std::size_t kMostReset = 43;

/// True if the packet is from a client that finishes a handshake that has expired here: its packets
/// are of type Handshake (RFC 9000 17.2), and it knows our reset token from our own packets.
bool ends_handshake(std::span<const std::byte> packet, const PacketTarget& target) noexcept {
    constexpr std::byte kTypeBits{0x30};
    constexpr std::byte kHandshake{0x20};
    return target.kind == PacketTarget::Kind::long_header && target.to.size == LocalCid::kBytes &&
           (packet[0] & kTypeBits) == kHandshake;
}

}  // namespace

void Endpoint::receive(TimePoint now, const Path& path, std::uint8_t ecn,
                       std::span<const std::byte> bytes, std::size_t segment_bytes) {
    while (!bytes.empty()) {
        const auto packet = bytes.first(std::min(segment_bytes, bytes.size()));
        bytes = bytes.subspan(packet.size());
        ++counts_.packets_in;
        receive_packet(now, path, ecn, packet);
    }
}

bool Endpoint::on_tunnelled(TimePoint now, const NodeId& from, std::span<const std::byte> packet) {
    ++counts_.packets_in;
    return receive_packet(now, {.local = tunnel_local(), .remote = Address::tunnel(from.bytes())},
                          0, packet);
}

// The connection id of a short header follows its first byte, and packets arrive in bursts.
Endpoint::Entry* Endpoint::same_as_before(std::span<const std::byte> packet) const noexcept {
    constexpr std::byte kLongHeader{0x80};
    if (last_entry_ == nullptr || packet.size() <= LocalCid::kBytes) return nullptr;
    if ((packet[0] & kLongHeader) != std::byte{0}) return nullptr;
    std::uint64_t number = 0;
    std::memcpy(&number, packet.data() + 1, sizeof number);
    return number == last_number_ ? last_entry_ : nullptr;
}

Endpoint::Entry* Endpoint::route(const PacketTarget& target) noexcept {
    if (target.to.size == LocalCid::kBytes) {
        LocalCid cid;
        std::copy_n(target.to.bytes.begin(), LocalCid::kBytes, cid.bytes.begin());
        if (const auto found = by_cid_.find(cid); found != by_cid_.end()) {
            last_number_ = cid.number();
            last_entry_ = found->second;
            return last_entry_;
        }
    }
    if (target.kind == PacketTarget::Kind::short_header) return nullptr;
    const auto found = by_first_cid_.find(target.to);
    return found == by_first_cid_.end() ? nullptr : found->second;
}

// A stateless reset looks like a packet with an unknown id, and ends with a token.
Endpoint::Entry* Endpoint::route_reset(const PacketTarget& target,
                                       std::span<const std::byte> packet) noexcept {
    if (target.kind != PacketTarget::Kind::short_header || packet.size() < kLeastReset) {
        return nullptr;
    }
    ResetToken token{};
    std::memcpy(token.data(), packet.last(token.size()).data(), token.size());
    const auto found = by_reset_token_.find(token);
    return found == by_reset_token_.end() ? nullptr : found->second;
}

bool Endpoint::receive_packet(TimePoint now, const Path& path, std::uint8_t ecn,
                              std::span<const std::byte> packet) {
    Entry* entry = same_as_before(packet);
    if (entry == nullptr) {
        const auto target = decode_target(packet);
        if (!target) {
            ++counts_.malformed;
            return false;
        }
        entry = route(*target);
        if (entry == nullptr) entry = route_reset(*target, packet);
        if (entry == nullptr) {
            receive_stranger(now, path, ecn, packet, *target);
            return false;
        }
    }
    Connection& connection = *entry->connection;
    Path seen = path;
    if (path.remote.is_tunnel()) {
        // A relay can replace the name of the source, but not the peer behind a connection.
        if (connection.is_up() && path.remote.tunnel_end() != connection.peer().node.bytes()) {
            ++counts_.forged;
            return false;
        }
        if (connection.dialed() && connection.remote().is_tunnel()) seen.local = connection.local();
    } else if (connection.dialed()) {
        // A dialer lets the kernel choose the local address, and must not mistake another choice
        // for another path.
        const bool direct = !connection.remote().is_tunnel();
        seen.local = direct ? connection.local() : Address::any(path.remote.is_v6());
    }
    // Another path has no other name.
    if (!connection.dialed() && path.remote == connection.remote()) {
        seen.local = connection.name_of(seen.local);
    }
    // Marks the connection ready: the next flush() updates its timer.
    return connection.receive(now, seen, ecn, packet);
}

void Endpoint::answer(const Path& path, std::size_t bytes) {
    if (bytes != 0) outbox_.add(path, 0, bytes, true);
}

void Endpoint::send_reset(TimePoint now, const Path& path, std::size_t packet_bytes,
                          const PacketTarget& target) {
    ++counts_.unknown;
    if (packet_bytes <= kLeastReset || !gate_.may_reply(now) || !outbox_.has_room()) return;
    LocalCid cid;
    std::copy_n(target.to.bytes.begin(), LocalCid::kBytes, cid.bytes.begin());
    const ResetToken token = reset_token(cid);
    std::array<std::uint8_t, kMostReset - token.size()> random{};
    options_.random(random);
    const std::size_t size = std::min(packet_bytes - 1, kMostReset);
    ++counts_.resets_sent;
    answer(path, write_stateless_reset(outbox_.room().first(size), token,
                                       std::span(random).first(size - token.size())));
}

void Endpoint::receive_stranger(TimePoint now, const Path& path, std::uint8_t ecn,
                                std::span<const std::byte> packet, const PacketTarget& target) {
    if (target.kind == PacketTarget::Kind::short_header || ends_handshake(packet, target)) {
        send_reset(now, path, packet.size(), target);
        return;
    }
    // RFC 9000 14.1: a smaller datagram cannot begin a connection, nor get a larger answer.
    const bool accepts = options_.accepts && options_.credentials != nullptr;
    if (!accepts || packet.size() < kLeastDatagram) {
        ++counts_.malformed;
        return;
    }
    if (target.kind == PacketTarget::Kind::other_version) {
        if (!gate_.may_reply(now) || !outbox_.has_room()) {
            ++counts_.dropped;
            return;
        }
        ++counts_.version_answers;
        std::array<std::uint8_t, 1> random{};
        options_.random(random);
        answer(path, write_version_negotiation(outbox_.room(), target, random[0]));
        return;
    }
    auto hello = decode_client_hello(packet);
    if (!hello) {
        ++counts_.malformed;
        return;
    }
    const RetryQuestion question{.remote = path.remote, .now = now};
    bool proven = false;
    if (has_retry_token(*hello)) {
        proven = verify_retry_token(*hello, options_.secret, question);
        if (!proven) ++counts_.bad_tokens;
    }
    switch (gate_.judge(now, path.remote, proven)) {
        case Gate::Verdict::accept:
            accept(now, path, ecn, packet, *hello);
            return;
        case Gate::Verdict::drop:
            ++counts_.dropped;
            return;
        case Gate::Verdict::retry:
            break;
    }
    if (!gate_.may_reply(now) || !outbox_.has_room()) {
        ++counts_.dropped;
        return;
    }
    ++counts_.retries;
    LocalCid from;
    options_.random(from.bytes);
    answer(path, write_retry(outbox_.room(), *hello, from, options_.secret, question));
}

bool Endpoint::make_room(TimePoint now, const Address& from) {
    while (const auto link = gate_.in_the_way(now, from)) {
        ++counts_.evicted;
        Entry& entry = *entries_.at(link->value());
        entry.connection->make_room(now);
        closed_half_open(entry);
    }
    return !gate_.full(from);
}

void Endpoint::accept(TimePoint now, const Path& path, std::uint8_t ecn,
                      std::span<const std::byte> packet, const ClientHelloPacket& hello) {
    if (!make_room(now, path.remote)) {
        ++counts_.dropped;
        return;
    }
    Entry& entry = make_entry();
    ConnectionStart how =
        start(now, path, {.cluster = options_.credentials->identity().cluster, .node = {}});
    how.id = entry.id;
    how.joins = options_.accepts_joiners;
    making_ = &entry;
    auto connection = Connection::accept(*this, std::move(how), hello);
    making_ = nullptr;
    if (!connection) {
        ++counts_.dropped;
        erase(entry);
        return;
    }
    entry.connection = std::move(*connection);
    entry.first_cid = hello.to;
    by_first_cid_.emplace(hello.to, &entry);
    entry.half_open = true;
    gate_.opened(now, entry.id, path.remote);
    ++counts_.accepted;
    set_ready(entry);
    entry.connection->receive(now, path, ecn, packet);
}

}  // namespace nexar::quic

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "base/address.hpp"
#include "samples.hpp"

/// Samples of the messages between a seed and joining nodes, and of a seed's files.
namespace nexar::wire::testing {

namespace {

constexpr std::uint64_t kAny = ~std::uint64_t{0};
constexpr std::uint32_t kAny32 = ~std::uint32_t{0};

std::uint32_t random_u32(Random& random, std::uint32_t min, std::uint32_t max) {
    return static_cast<std::uint32_t>(random.number(min, max));
}

/// All zero, which often has a special meaning, one time in four.
template <std::size_t N>
std::array<std::byte, N> random_array(Random& random) {
    std::array<std::byte, N> made{};
    if (random.below(4) == 0) return made;
    for (std::byte& byte : made) byte = static_cast<std::byte>(random.below(256));
    return made;
}

AddressText random_address(Random& random) {
    static constexpr std::array<std::string_view, 5> kEdges{
        "0.0.0.0:0", "[::]:0", "255.255.255.255:65535", "[::1]:1",
        "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"};
    if (random.below(4) == 0) return {std::string(kEdges[random.below(kEdges.size())])};
    Address address = Address::any(random.coin());
    if (address.is_v6()) {
        sockaddr_in6 v6 = address.v6();
        for (auto& byte : v6.sin6_addr.s6_addr) byte = static_cast<std::uint8_t>(random.upto(255));
        // Runs of zeros could give one address two texts.
        std::fill_n(v6.sin6_addr.s6_addr + random.below(8), random.below(8), std::uint8_t{0});
        address = Address(v6);
    } else {
        sockaddr_in v4 = address.v4();
        v4.sin_addr.s_addr = random_u32(random, 0, kAny32);
        address = Address(v4);
    }
    return {address.unmapped().with_port(static_cast<std::uint16_t>(random.upto(65535))).text()};
}

std::vector<AddressText> random_addresses(Random& random) {
    std::vector<AddressText> addresses(random.below(16) == 0 ? kMaxAddresses : random.below(4));
    for (AddressText& one : addresses) one = random_address(random);
    return addresses;
}

ViewMember random_member(Random& random) {
    return {.node = random_array<16>(random),
            .incarnation = random.number(0, kAny),
            .rank = Rank(random_u32(random, 0, kMaxRank - 1)),
            .addresses = random_addresses(random),
            .key_hash = random_array<32>(random),
            .token = random_array<16>(random),
            .host = random.text(kMaxHostBytes)};
}

/// Sorts `list` as its rule requires and removes duplicates.
template <class Entry, class Key>
void order(std::vector<Entry>& list, Key key) {
    std::ranges::sort(list, {}, key);
    const auto same = std::ranges::unique(list, {}, key);
    list.erase(same.begin(), same.end());
}

std::vector<SpentToken> random_spent(Random& random) {
    std::vector<SpentToken> spent(random.below(8));
    for (SpentToken& one : spent) {
        one = {.token = random_array<16>(random), .uses = random_u32(random, 0, kAny32)};
    }
    order(spent, &SpentToken::token);
    return spent;
}

/// Counts up from `first`, so that a test detects swapped bytes.
template <std::size_t N>
std::array<std::byte, N> counted(unsigned first) {
    std::array<std::byte, N> made{};
    for (std::size_t i = 0; i < N; ++i) made[i] = static_cast<std::byte>(first + i);
    return made;
}

ViewMember first_member() {
    return {.node = counted<16>(0x10),
            .incarnation = 1,
            .rank = Rank(0),
            .addresses = {{"10.0.0.7:7400"}, {"[fd00::7]:7400"}},
            .key_hash = counted<32>(0xc0),
            .token = counted<16>(0x30),
            .host = "node7"};
}

ViewMember second_member() {
    return {.node = counted<16>(0x20),
            .incarnation = 6,
            .rank = Rank(2),
            .addresses = {{"10.0.0.9:41000"}},
            .key_hash = counted<32>(0x80)};
}

std::vector<SpentToken> two_spent() {
    return {{.token = counted<16>(0x30), .uses = 2}, {.token = counted<16>(0x50), .uses = 1}};
}

}  // namespace

template <>
Proof random_message<Proof>(Random& random) {
    return {.code = random_array<32>(random)};
}

template <>
JoinRequest random_message<JoinRequest>(Random& random) {
    return {.token = random_array<16>(random),
            .token_secret = random_array<32>(random),
            .signing_request = random.bytes(kMaxSigningRequestBytes),
            .host = random.text(kMaxHostBytes),
            .addresses = random_addresses(random)};
}

template <>
Admission random_message<Admission>(Random& random) {
    return {.node = random_array<16>(random),
            .incarnation = random.number(0, kAny),
            .certificate = random.bytes(kMaxCertificateBytes)};
}

template <>
ViewFrame random_message<ViewFrame>(Random& random) {
    ViewFrame m{.epoch = Epoch(random.number(1, kAny)), .witness = random_array<16>(random)};
    if (m.witness != Id{}) m.witness_incarnation = random.number(0, kAny);
    m.members.resize(random.below(8));
    for (ViewMember& member : m.members) member = random_member(random);
    order(m.members, &ViewMember::rank);
    const std::uint32_t lowest = m.members.empty() ? 0 : m.members.back().rank.value() + 1;
    m.next_rank = Rank(random_u32(random, lowest, kMaxRank));
    m.spent = random_spent(random);
    m.left.resize(random.below(4));
    for (Rank& rank : m.left) rank = Rank(random_u32(random, 0, kMaxRank));
    order(m.left, std::identity{});
    return m;
}

template <>
Formation random_message<Formation>(Random& random) {
    return {.joined = random_u32(random, 0, kMaxWorldSize),
            .world_size = random_u32(random, 1, kMaxWorldSize),
            .text = random.text(kMaxReportTextBytes)};
}

template <>
Renewal random_message<Renewal>(Random& random) {
    return {.signing_request = random.bytes(kMaxSigningRequestBytes)};
}

template <>
LinkReport random_message<LinkReport>(Random& random) {
    return {.rank = Rank(random_u32(random, 0, kMaxRank)),
            .address = random.coin() ? random_address(random) : AddressText{},
            .round_trip = std::chrono::nanoseconds(random.number(0, kAny >> 1)),
            .why = random.text(kMaxReportTextBytes),
            .hops = static_cast<std::uint8_t>(random.number(1, kMaxHops)),
            .via = Rank(random_u32(random, 0, kMaxRank))};
}

template <>
StoredTokens random_message<StoredTokens>(Random& random) {
    StoredTokens m;
    m.tokens.resize(random.below(8));
    for (StoredToken& token : m.tokens) {
        token = {.id = random_array<16>(random),
                 .secret_hash = random_array<32>(random),
                 .uses = random_u32(random, 0, kAny32),
                 .created_at = random.number(0, kAny),
                 .expires_at = random.number(0, kAny),
                 .revoked = random.coin()};
    }
    order(m.tokens, &StoredToken::id);
    return m;
}

template <>
StoredSeed random_message<StoredSeed>(Random& random) {
    StoredSeed m{.seed = random_array<16>(random),
                 .incarnation = random.number(0, kAny),
                 .epoch = Epoch(random.number(0, kAny)),
                 .world_size = random_u32(random, 1, kMaxWorldSize)};
    m.members.resize(random.below(8));
    for (ViewMember& member : m.members) member = random_member(random);
    order(m.members, &ViewMember::rank);
    m.spent = random_spent(random);
    m.origin = random_array<32>(random);
    m.least_epoch = Epoch(random.number(0, kAny));
    if (random.coin()) {
        m.view = {random_message<ViewFrame>(random)};
        m.epoch = m.view.front().epoch;
    }
    m.promised_round = random.number(0, kAny);
    m.promised_by = random_array<16>(random);
    if (random.coin()) {
        m.accepted_round = random.number(1, kAny);
        m.accepted_by = random_array<16>(random);
        m.accepted = {random_message<ViewFrame>(random)};
    }
    return m;
}

template <>
Proof example<Proof>() {
    return {.code = counted<32>(0x60)};
}

template <>
JoinRequest example<JoinRequest>() {
    return {.token = counted<16>(0x30),
            .token_secret = counted<32>(0xa0),
            .signing_request = from_hex("30 03 02 01 05"),
            .host = "node7",
            .addresses = {{"10.0.0.7:7400"}, {"[fd00::7]:7400"}}};
}

template <>
Admission example<Admission>() {
    return {.node = counted<16>(0x10),
            .incarnation = 1,
            .certificate = from_hex("30 06 02 01 07 02 01 09")};
}

template <>
ViewFrame example<ViewFrame>() {
    return {.epoch = Epoch(4),
            .witness = counted<16>(0x40),
            .witness_incarnation = 3,
            .next_rank = Rank(5),
            .members = {first_member(), second_member()},
            .spent = two_spent(),
            .left = {Rank(1), Rank(3)}};
}

template <>
Formation example<Formation>() {
    return {
        .joined = 3, .world_size = 4, .text = "3 of 4 joined; 10.0.0.7 presented an expired token"};
}

template <>
Renewal example<Renewal>() {
    return {.signing_request = from_hex("30 03 02 01 05")};
}

template <>
LinkReport example<LinkReport>() {
    using namespace std::chrono_literals;
    return {.rank = Rank(2),
            .address = {"10.0.0.9:41000"},
            .round_trip = 120us,
            .why = "172.17.0.1:41000: other node",
            .hops = 3,
            .via = Rank(5)};
}

template <>
StoredTokens example<StoredTokens>() {
    return {.tokens = {{.id = counted<16>(0x30),
                        .secret_hash = counted<32>(0xc0),
                        .uses = 4,
                        .created_at = 1'777'863'721,
                        .expires_at = 1'777'867'321,
                        .revoked = true},
                       {.id = counted<16>(0x50),
                        .secret_hash = counted<32>(0x80),
                        .uses = 1,
                        .created_at = 1'777'863'722,
                        .expires_at = 1'777'863'782}}};
}

template <>
StoredSeed example<StoredSeed>() {
    return {.seed = counted<16>(0x40),
            .incarnation = 3,
            .epoch = Epoch(4),
            .world_size = 2,
            .members = {first_member(), second_member()},
            .spent = two_spent(),
            .origin = counted<32>(0x60),
            .least_epoch = Epoch(6),
            .view = {{.epoch = Epoch(4),
                      .witness = counted<16>(0x40),
                      .witness_incarnation = 3,
                      .next_rank = Rank(7)}},
            .promised_round = 9,
            .promised_by = counted<16>(0x10),
            .accepted_round = 8,
            .accepted_by = counted<16>(0x20),
            .accepted = {{.epoch = Epoch(5), .next_rank = Rank(8)}}};
}

}  // namespace nexar::wire::testing

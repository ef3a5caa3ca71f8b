#pragma once

#include <algorithm>
#include <functional>

#include "base/address.hpp"
#include "wire/describe.hpp"
#include "wire/seed_messages.hpp"

/// The layouts of wire/seed_messages.hpp, written as in wire/describe.hpp.
namespace nexar::wire {

namespace detail {

/// Each address has exactly one text. An IPv4-mapped IPv6 address (Address::mapped()) must be
/// written as IPv4.
inline bool is_address(const std::string& text) {
    const auto address = Address::parse(text);
    return address.has_value() && address->unmapped().text() == text;
}

template <class List, class Key>
bool strictly_ascends(const List& list, Key key) {
    return std::ranges::adjacent_find(list, std::ranges::greater_equal{}, key) == list.end();
}

}  // namespace detail

template <class Io>
void describe(Io& io, Of<AddressText> auto& m) {
    io.text("address", m.text, {0, kMaxAddressBytes});
    // Empty only in a LinkReport without a link.
    io.rule([&] { return m.text.empty() || detail::is_address(m.text); }, "address length",
            m.text.size(), "the text must be an address and a port in canonical form");
}

template <class Io>
void describe(Io& io, Of<Proof> auto& m) {
    io.array("code", m.code);
}

template <class Io>
void describe_addresses(Io& io, auto& addresses) {
    io.list("addresses", addresses, kMaxAddresses);
    io.rule(
        [&] { return std::ranges::none_of(addresses, &std::string::empty, &AddressText::text); },
        "number of addresses", addresses.size(), "none of them may be empty");
}

template <class Io>
void describe(Io& io, Of<JoinRequest> auto& m) {
    io.array("token", m.token);
    io.array("token_secret", m.token_secret);
    io.bytes("signing_request", m.signing_request, kMaxSigningRequestBytes);
    io.text("host", m.host, {0, kMaxHostBytes});
    describe_addresses(io, m.addresses);
}

template <class Io>
void describe(Io& io, Of<Admission> auto& m) {
    io.array("node", m.node);
    io.number("incarnation", m.incarnation);
    io.bytes("certificate", m.certificate, kMaxCertificateBytes);
}

template <class Io>
void describe(Io& io, Of<SpentToken> auto& m) {
    io.array("token", m.token);
    io.number("uses", m.uses);
}

template <class Io>
void describe(Io& io, Of<ViewMember> auto& m) {
    io.array("node", m.node);
    io.number("incarnation", m.incarnation);
    io.number("rank", m.rank, {0, kMaxRank});
    describe_addresses(io, m.addresses);
    io.array("key_hash", m.key_hash);
    io.array("token", m.token);
    io.text("host", m.host, {0, kMaxHostBytes});
}

template <class Io>
void describe(Io& io, Of<Rank> auto& m) {
    io.number("rank", m, {0, kMaxRank});
}

template <class Io>
void describe(Io& io, Of<ViewFrame> auto& m) {
    io.number("epoch", m.epoch, {1, ~std::uint64_t{0}});
    io.array("witness", m.witness);
    io.number("witness_incarnation", m.witness_incarnation);
    io.number("next_rank", m.next_rank, {0, kMaxRank});
    io.list("members", m.members, kMaxViewMembers);
    io.list("spent", m.spent, kMaxStoredTokens);
    io.list("left", m.left, kMaxViewMembers);
    io.rule([&] { return m.witness != Id{} || m.witness_incarnation == 0; }, "witness_incarnation",
            m.witness_incarnation, "it must be 0 if there is no witness");
    io.rule([&] { return detail::strictly_ascends(m.members, &ViewMember::rank); },
            "number of members", m.members.size(), "ranks must strictly ascend");
    io.rule([&] { return m.members.empty() || m.members.back().rank < m.next_rank; }, "next_rank",
            m.next_rank.value(), "it must be above the ranks of all members");
    io.rule([&] { return detail::strictly_ascends(m.spent, &SpentToken::token); },
            "number of spent tokens", m.spent.size(), "ids must strictly ascend");
    io.rule([&] { return detail::strictly_ascends(m.left, std::identity{}); },
            "number of ranks that left", m.left.size(), "ranks must strictly ascend");
}

template <class Io>
void describe(Io& io, Of<Formation> auto& m) {
    io.number("joined", m.joined, {0, kMaxWorldSize});
    io.number("world_size", m.world_size, {1, kMaxWorldSize});
    io.text("text", m.text, {0, kMaxReportTextBytes});
}

template <class Io>
void describe(Io& io, Of<Renewal> auto& m) {
    io.bytes("signing_request", m.signing_request, kMaxSigningRequestBytes);
}

template <class Io>
void describe(Io& io, Of<LinkReport> auto& m) {
    io.number("rank", m.rank, {0, kMaxRank});
    describe(io, m.address);
    io.number("round_trip", m.round_trip);
    io.text("why", m.why, {0, kMaxReportTextBytes});
    io.number("hops", m.hops, {1, kMaxHops});
    io.number("via", m.via, {0, kMaxRank});
}

template <class Io>
void describe(Io& io, Of<StoredToken> auto& m) {
    io.array("id", m.id);
    io.array("secret_hash", m.secret_hash);
    io.number("uses", m.uses);
    io.number("created_at", m.created_at);
    io.number("expires_at", m.expires_at);
    io.boolean("revoked", m.revoked);
}

template <class Io>
void describe(Io& io, Of<StoredTokens> auto& m) {
    io.list("tokens", m.tokens, kMaxStoredTokens);
    io.rule([&] { return detail::strictly_ascends(m.tokens, &StoredToken::id); },
            "number of tokens", m.tokens.size(), "ids must strictly ascend");
}

template <class Io>
void describe(Io& io, Of<StoredSeed> auto& m) {
    io.array("seed", m.seed);
    io.number("incarnation", m.incarnation);
    io.number("epoch", m.epoch);
    io.number("world_size", m.world_size, {1, kMaxWorldSize});
    io.list("members", m.members, kMaxViewMembers);
    io.list("spent", m.spent, kMaxStoredTokens);
    io.array("origin", m.origin);
    io.number("least_epoch", m.least_epoch);
    io.list("view", m.view, 1);
    io.number("promised_round", m.promised_round);
    io.array("promised_by", m.promised_by);
    io.number("accepted_round", m.accepted_round);
    io.array("accepted_by", m.accepted_by);
    io.list("accepted", m.accepted, 1);
    io.rule([&] { return detail::strictly_ascends(m.members, &ViewMember::rank); },
            "number of members", m.members.size(), "ranks must strictly ascend");
    io.rule([&] { return detail::strictly_ascends(m.spent, &SpentToken::token); },
            "number of spent tokens", m.spent.size(), "ids must strictly ascend");
    io.rule([&] { return m.view.empty() || m.view.front().epoch == m.epoch; }, "epoch",
            m.epoch.value(), "it must be that of the view");
    io.rule([&] { return m.accepted.empty() == (m.accepted_round == 0); }, "accepted_round",
            m.accepted_round, "a vote must have a view");
}

}  // namespace nexar::wire

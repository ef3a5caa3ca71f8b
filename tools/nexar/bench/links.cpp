#include "bench/links.hpp"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

namespace nexar::bench {

namespace {

/// The names of the kinds that a node reports for a peer. A node that does not report kinds has
/// QUIC links only.
template <class Peer>
std::vector<std::string> kinds_of(const Peer& peer) {
    if constexpr (requires { peer.links; }) {
        return peer.links;
    } else {
        return {"quic"};
    }
}

std::uint8_t kind_named(std::string_view name) {
    if (name == "quic") return LinkUse::quic;
    return name == "shm" ? LinkUse::shm : LinkUse::other;
}

std::uint8_t set_of(const std::vector<std::string>& kinds) {
    unsigned set = LinkUse::none;
    for (const std::string& kind : kinds) set |= kind_named(kind);
    return static_cast<std::uint8_t>(set);
}

std::string name_of(unsigned set) {
    constexpr std::array<std::pair<unsigned, std::string_view>, 3> kNames{
        {{LinkUse::shm, "shm"}, {LinkUse::quic, "quic"}, {LinkUse::other, "other"}}};
    std::string name;
    for (const auto& [kind, its_name] : kNames) {
        if ((set & kind) != 0) name += (name.empty() ? "" : "+") + std::string(its_name);
    }
    return name.empty() ? "none" : name;
}

}  // namespace

bool LinkUse::all_share_memory() const {
    for (std::uint32_t rank = 0; rank < world_; ++rank) {
        for (std::uint32_t peer = rank + 1; peer < world_; ++peer) {
            if ((between(rank, peer) & shm) == 0) return false;
        }
    }
    return world_ > 1;
}

std::string LinkUse::text() const {
    std::array<std::uint32_t, 8> pairs{};  // by set
    for (std::uint32_t rank = 0; rank < world_; ++rank) {
        for (std::uint32_t peer = rank + 1; peer < world_; ++peer)
            ++pairs[between(rank, peer) & 7U];
    }
    std::vector<std::string> parts;
    std::string only = "none";
    for (std::size_t i = pairs.size(); i-- > 0;) {
        if (pairs[i] == 0) continue;
        only = name_of(static_cast<unsigned>(i));
        parts.push_back(
            fmt::format("{} between {} {}", only, pairs[i], pairs[i] == 1 ? "pair" : "pairs"));
    }
    return parts.size() <= 1 ? only : fmt::format("{}", fmt::join(parts, ", "));
}

bool LinkUse::all_share_memory(std::span<const int> ranks) const {
    for (const int rank : ranks) {
        for (const int peer : ranks) {
            const auto used =
                between(static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(peer));
            if (rank != peer && (used & shm) == 0) return false;
        }
    }
    return ranks.size() > 1;
}

Result<void> LinkUse::require(std::string_view link) const {
    if (link == "auto") return {};
    const std::uint8_t wanted = kind_named(link);
    // A pair with shared memory may keep a QUIC link, which then carries no data.
    const auto fine = [&](unsigned used) {
        return used == none || used == wanted || (wanted == shm && (used & wanted) != 0);
    };
    for (std::uint32_t rank = 0; rank < world_; ++rank) {
        for (std::uint32_t peer = rank + 1; peer < world_; ++peer) {
            const std::uint8_t used = between(rank, peer);
            if (fine(used)) continue;
            return Error(Errc::unsupported,
                         fmt::format("the link {} is required, but ranks {} and {} use {}", link,
                                     rank, peer, name_of(used)));
        }
    }
    return {};
}

LinkUse links_between(const Node& node) {
    const Communicator world = node.world();
    const auto size = static_cast<std::size_t>(world.size());
    // Afterwards every pair that connects when the cluster forms is connected.
    world.barrier().wait();
    std::vector<std::uint8_t> own(size, LinkUse::none);
    for (const PeerLink& peer : node.peers()) {
        if (peer.connected) own[static_cast<std::size_t>(peer.rank)] = set_of(kinds_of(peer));
    }
    std::vector<std::uint8_t> all(size * size);
    world.all_gather(std::span<const std::uint8_t>(own), std::span<std::uint8_t>(all)).wait();
    return {static_cast<std::uint32_t>(size), std::move(all)};
}

}  // namespace nexar::bench

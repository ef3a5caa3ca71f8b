#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "base/types.hpp"

#include "base/address.hpp"
#include "base/identity.hpp"

namespace nexar {

/// A member of a view.
struct Member {
    NodeId node{};
    Incarnation incarnation{};
    Rank rank{};                           // never given to another member of this cluster
    std::vector<Address> addresses{};      // where to reach it, best first
    std::string host{};                    // for display
    std::array<std::byte, 32> key_hash{};  // of the public key with which it joined
    std::array<std::byte, 16> token{};     // with which it joined; all zero: the job secret

    friend bool operator==(const Member&, const Member&) = default;
};

/// The seed that breaks ties among the view's voters.
struct Witness {
    NodeId seed{};
    Incarnation incarnation{};

    friend bool operator==(const Witness&, const Witness&) noexcept = default;
};

/// How often a join token was used, including by members that have left.
struct SpentToken {
    std::array<std::byte, 16> token{};
    std::uint32_t uses = 1;

    friend bool operator==(const SpentToken&, const SpentToken&) noexcept = default;
};

/// `nexar members forget` raises the epoch by this much: more than the members that it forgets can
/// have decided without the seed.
inline constexpr std::uint64_t kForgottenEpochs = std::uint64_t{1} << 20;

/// The agreed members of the cluster in one epoch. Epochs only grow, and each has exactly one list
/// of members. A view also has what must be agreed together with the members, so that two seeds can
/// never grant the same rank or the same use of a token.
struct View {
    Epoch epoch{};                  // 0: none yet
    std::vector<Member> members{};  // strictly ascending by rank
    std::optional<Witness> witness{};
    Rank next_rank{};                 // of the next member to join
    std::vector<SpentToken> spent{};  // strictly ascending by token
    /// Members of the view before that left in good order, ascending; the others that are missing
    /// failed.
    std::vector<Rank> left{};

    const Member* find(const NodeId& node) const noexcept {
        const auto found = std::ranges::find(members, node, &Member::node);
        return found == members.end() ? nullptr : &*found;
    }

    const Member* find(Rank rank) const noexcept {
        const auto found = std::ranges::lower_bound(members, rank, {}, &Member::rank);
        return found == members.end() || found->rank != rank ? nullptr : &*found;
    }

    /// True for an even number of members: then the witness votes on the next view as well.
    bool witness_votes() const noexcept { return members.size() % 2 == 0 && witness.has_value(); }
    std::size_t voters() const noexcept { return members.size() + (witness_votes() ? 1 : 0); }
    /// The number of voters that decide on the next view.
    std::size_t majority() const noexcept { return voters() / 2 + 1; }

    friend bool operator==(const View&, const View&) = default;
};

}  // namespace nexar

#pragma once

#include <algorithm>
#include <optional>
#include <vector>
#include "base/types.hpp"

#include "base/address.hpp"
#include "base/identity.hpp"

namespace nexar {

/// A member of a view.
struct Member {
    NodeId node{};
    Incarnation incarnation{};
    Rank rank{};
    std::vector<Address> addresses{};  // where to reach it, best first

    friend bool operator==(const Member&, const Member&) = default;
};

/// The seed that breaks ties among the view's voters.
struct Witness {
    NodeId seed{};
    Incarnation incarnation{};

    friend bool operator==(const Witness&, const Witness&) noexcept = default;
};

/// The agreed members of the cluster in one epoch. Epochs only grow, and each has exactly one list
/// of members.
struct View {
    Epoch epoch{};                  // 0: none yet
    std::vector<Member> members{};  // strictly ascending by rank
    std::optional<Witness> witness{};

    const Member* find(const NodeId& node) const noexcept {
        const auto found = std::ranges::find(members, node, &Member::node);
        return found == members.end() ? nullptr : &*found;
    }

    friend bool operator==(const View&, const View&) = default;
};

}  // namespace nexar

#include "membership/proposal.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/mix.hpp"
#include "membership/planted.hpp"

namespace nexar::membership {
namespace {

void spend(std::vector<SpentToken>& spent, const std::array<std::byte, 16>& token) {
    if (token == std::array<std::byte, 16>{}) return;
    if (planted(Bug::token_spent_twice)) return;
    const auto at = std::ranges::lower_bound(spent, token, {}, &SpentToken::token);
    if (at != spent.end() && at->token == token) {
        ++at->uses;
    } else {
        spent.insert(at, {.token = token, .uses = 1});
    }
}

Rank next(Rank rank) {
    return Rank(rank.value() + 1);
}

Rank lowest_free(const View& view) {
    Rank rank{};
    for (const Member& member : view.members) {
        if (member.rank != rank) break;
        rank = next(rank);
    }
    return rank;
}

void admit(View& view, Member member) {
    if (planted(Bug::rank_reused)) {
        member.rank = lowest_free(view);
        view.next_rank = std::max(view.next_rank, next(member.rank));
        const auto at = std::ranges::lower_bound(view.members, member.rank, {}, &Member::rank);
        view.members.insert(at, std::move(member));
        return;
    }
    member.rank = view.next_rank;
    view.next_rank = next(view.next_rank);
    spend(view.spent, member.token);
    view.members.push_back(std::move(member));
}

/// A 128-bit hash of values that are fed to it one by one.
class Hash {
public:
    void add(std::uint64_t value) noexcept {
        first_ = mixed(first_ ^ value);
        second_ = mixed(second_ + value + 0x9e37'79b9'7f4a'7c15U);
    }
    template <std::size_t Size>
    void add(const std::array<std::byte, Size>& bytes) noexcept {
        for (std::size_t i = 0; i + 8 <= Size; i += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes.data() + i, sizeof word);
            add(word);
        }
    }
    void add(std::string_view text) noexcept {
        add(text.size());
        for (const char c : text) add(static_cast<unsigned char>(c));
    }
    wire::BallotNumber result() const noexcept {
        wire::BallotNumber number{.round = first_ | 1U};
        std::memcpy(number.proposer.data(), &second_, sizeof second_);
        return number;
    }

private:
    std::uint64_t first_ = 1;
    std::uint64_t second_ = 2;
};

}  // namespace

std::vector<Voter> voters_of(const View& view) {
    std::vector<Voter> voters;
    voters.reserve(view.members.size() + 1);
    for (const Member& member : view.members) voters.push_back({member.node, member.incarnation});
    const bool votes =
        view.witness_votes() || (planted(Bug::witness_votes_when_odd) && view.witness);
    if (votes && view.witness) voters.push_back({view.witness->seed, view.witness->incarnation});
    return voters;
}

View successor(const View& base, const Changes& changes) {
    View view{.epoch = Epoch(base.epoch.value() + 1),
              .witness = changes.witness ? changes.witness : base.witness,
              .next_rank = base.next_rank,
              .spent = base.spent};
    view.members.reserve(base.members.size() + changes.joiners.size());
    for (const Member& member : base.members) {
        const bool left = std::ranges::find(changes.left, member.node) != changes.left.end();
        const bool failed = std::ranges::find(changes.failed, member.node) != changes.failed.end();
        const bool replaced =
            std::ranges::find(changes.joiners, member.node, &Member::node) != changes.joiners.end();
        if (left && !planted(Bug::left_as_lost)) view.left.push_back(member.rank);
        if (!left && !failed && !replaced) view.members.push_back(member);
    }
    for (const Member& joiner : changes.joiners) admit(view, joiner);
    return view;
}

std::optional<Difference> compare(const View& base, const View& next_view) {
    if (next_view.epoch.value() != base.epoch.value() + 1) {
        if (!planted(Bug::skip_epoch_check)) return std::nullopt;
    }
    Difference difference;
    View expected{.epoch = next_view.epoch,
                  .witness = next_view.witness,
                  .next_rank = base.next_rank,
                  .spent = base.spent,
                  .left = next_view.left};
    expected.members.reserve(next_view.members.size());
    auto given = next_view.members.begin();
    for (const Member& member : base.members) {
        if (given != next_view.members.end() && *given == member) {
            expected.members.push_back(member);
            ++given;
            continue;
        }
        const bool left = std::ranges::binary_search(next_view.left, member.rank);
        (left ? difference.left : difference.failed).push_back(member);
    }
    if (difference.left.size() != next_view.left.size()) return std::nullopt;
    if (planted(Bug::rank_reused)) {
        for (const Member& member : next_view.members) {
            const auto old = std::ranges::find(base.members, member);
            if (old == base.members.end()) difference.joined.push_back(member);
        }
        return difference;
    }
    difference.joined.assign(given, next_view.members.end());
    for (const Member& joiner : difference.joined) {
        if (expected.find(joiner.node) != nullptr) return std::nullopt;
        admit(expected, joiner);
    }
    if (expected != next_view) return std::nullopt;
    return difference;
}

wire::BallotNumber digest(const View& view) {
    Hash hash;
    hash.add(view.epoch.value());
    if (view.witness) {
        hash.add(view.witness->seed.bytes());
        hash.add(view.witness->incarnation.value());
    }
    hash.add(view.next_rank.value());
    hash.add(view.members.size());
    for (const Member& member : view.members) {
        hash.add(member.node.bytes());
        hash.add(member.incarnation.value());
        hash.add(member.rank.value());
        hash.add(member.key_hash);
        hash.add(member.token);
        hash.add(std::string_view(member.host));
        hash.add(member.addresses.size());
        for (const Address& address : member.addresses) hash.add(std::string_view(address.text()));
    }
    hash.add(view.spent.size());
    for (const SpentToken& spent : view.spent) {
        hash.add(spent.token);
        hash.add(spent.uses);
    }
    for (const Rank rank : view.left) hash.add(rank.value());
    return hash.result();
}

}  // namespace nexar::membership

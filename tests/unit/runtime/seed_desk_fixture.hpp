#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/seed/seed_desk.hpp"

namespace nexar::runtime {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline const Address some_address = Address::parse("10.0.0.7:1234").value();

/// A token and its secret, as a joiner holds them.
struct Held {
    security::TokenId id{};
    std::vector<std::byte> secret{};
};

class Desk : public ::testing::Test {
protected:
    explicit Desk(std::uint32_t world = 3) {
        start({.seed = {std::byte{0x5e}}, .incarnation = 9}, {.world = world});
    }

    void start(const wire::StoredSeed& state, const DeskOptions& options) {
        desk_.emplace(
            state, options,
            [this] {
                std::array<std::byte, NodeId::kBytes> bytes{};
                bytes.back() = static_cast<std::byte>(++made_);
                return NodeId(bytes);
            },
            now_);
    }
    /// Simulates a restarted seed that reads the stored state.
    void restart(std::uint32_t world = 3) {
        const wire::StoredSeed kept = desk_->state();
        start(kept, {.world = world});
    }

    Held token(std::uint32_t uses, std::chrono::seconds life = hours(1)) {
        auto made = tokens_.create({.uses = uses, .life = life}, wall_).value();
        Held held{.id = made.token.id};
        made.secret.reveal([&](std::span<const std::byte> bytes) {
            held.secret.assign(bytes.begin(), bytes.end());
        });
        return held;
    }

    Applicant applicant(const Held& held, unsigned key, std::optional<Rank> rank = {}) const {
        Applicant one;
        one.token = held.id;
        one.secret = held.secret;
        one.key.fill(static_cast<std::byte>(key));
        one.wanted_rank = rank;
        one.addresses = {some_address};
        one.host = fmt::format("host{}", key);
        return one;
    }
    Result<Member> admit(const Applicant& one) { return desk_->admit(one, tokens_, wall_, now_); }
    Member let_in(const Held& held, unsigned key, std::optional<Rank> rank = {}) {
        return admit(applicant(held, key, rank)).value();
    }
    static Identity identity(const Member& member) {
        return {.cluster = {}, .node = member.node, .incarnation = member.incarnation};
    }
    void attend(const Member& member) { EXPECT_TRUE(desk_->attend(identity(member)).has_value()); }
    void pass(Duration span) {
        now_ += span;
        desk_->expire(now_);
    }
    /// Admits all members and lets them attend; the world forms.
    std::vector<Member> form(unsigned first_key = 1) {
        const Held held = token(3);
        std::vector<Member> all;
        for (unsigned i = 0; i < 3; ++i) all.push_back(let_in(held, first_key + i));
        for (const Member& member : all) attend(member);
        EXPECT_TRUE(desk_->try_form());
        return all;
    }

    /// The view after the newest one, as the members would decide it.
    View next_view(const std::vector<Member>& joiners = {},
                   const std::vector<Rank>& without = {}) const {
        View view = desk_->view().value();
        view.epoch = Epoch(view.epoch.value() + 1);
        std::erase_if(view.members, [&](const Member& one) {
            return std::ranges::find(without, one.rank) != without.end();
        });
        for (Member joiner : joiners) {
            joiner.rank = view.next_rank;
            view.next_rank = Rank(view.next_rank.value() + 1);
            view.members.push_back(joiner);
            const auto at =
                std::ranges::lower_bound(view.spent, joiner.token, {}, &SpentToken::token);
            if (at != view.spent.end() && at->token == joiner.token) {
                ++at->uses;
            } else {
                view.spent.insert(at, {.token = joiner.token, .uses = 1});
            }
        }
        return view;
    }

    TimePoint now_ = TimePoint(seconds(50));
    security::WallTime wall_ = security::WallTime(hours(500'000));
    security::TokenTable tokens_;
    std::optional<SeedDesk> desk_;
    unsigned made_ = 0;
};

}  // namespace nexar::runtime

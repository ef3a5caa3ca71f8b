#include "runtime/seed/forget_members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/view.hpp"
#include "runtime/seed/stored_vote.hpp"

namespace nexar::runtime {

Result<wire::StoredSeed> forget_members(const wire::StoredSeed& state,
                                        const std::vector<Rank>& ranks) {
    if (state.view.empty()) {
        return Error(Errc::invalid_argument,
                     "no cluster has formed, so there are no members to forget");
    }
    wire::StoredSeed next = state;
    wire::ViewFrame& view = next.view.front();
    for (const Rank rank : ranks) {
        if (std::erase_if(view.members, [&](const auto& one) { return one.rank == rank; }) == 1) {
            continue;
        }
        std::string known;
        for (const auto& one : state.view.front().members) {
            known += fmt::format(" {}", one.rank.value());
        }
        return Error(Errc::invalid_argument,
                     fmt::format("the cluster has no member with rank {}; its ranks are:{}",
                                 rank.value(), known));
    }
    next.epoch = Epoch(state.epoch.value() + kForgottenEpochs);
    // Votes belong to the view after the old one.
    clear_vote(next);
    if (view.members.empty()) {
        next.spent = view.spent;
        next.members.clear();
        next.view.clear();
        return next;
    }
    view.epoch = next.epoch;
    view.witness = state.seed;
    view.witness_incarnation = state.incarnation;
    view.left.clear();
    return next;
}

}  // namespace nexar::runtime

#include "process/p2p/child_ranks.hpp"

#include <gtest/gtest.h>

#include "process/p2p/member.hpp"

namespace nexar::testing {

void ChildRanks::add(const std::function<void(const Channel& parent)>& body) {
    ranks_.push_back(
        std::make_unique<ChildProcess>([&body](const Channel& parent) { body(parent); }));
}

void ChildRanks::tell_all(std::string_view message) const {
    for (const auto& rank : ranks_) rank->channel().say(message);
}

void ChildRanks::await_all(std::string_view expected) const {
    for (const auto& rank : ranks_) await(rank->channel(), expected, kWithin);
}

void ChildRanks::let_meet() const {
    await_all("here");
    tell_all("on");
}

void ChildRanks::expect_end() {
    for (const auto& rank : ranks_) {
        EXPECT_EQ(rank->wait(), 0) << rank->channel().heard().value_or("");
    }
}

void meet(const Channel& parent) {
    parent.say("here");
    await(parent, "on", kWithin);
}

}  // namespace nexar::testing

#include "samples.hpp"

/// Samples of the messages with which members and seeds detect failures and agree on views.
namespace nexar::wire::testing {

template <>
ViewFrame random_message<ViewFrame>(Random& random);
template <>
ViewFrame example<ViewFrame>();

namespace {

constexpr std::uint64_t kAnyNumber = ~std::uint64_t{0};

Id random_id(Random& random) {
    Id id{};
    for (std::byte& byte : id) byte = static_cast<std::byte>(random.below(256));
    return id;
}

Id id_from(unsigned first) {
    Id id{};
    for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::byte>(first + i);
    return id;
}

BallotNumber random_ballot_number(Random& random) {
    return {.round = random.number(1, kAnyNumber), .proposer = random_id(random)};
}

}  // namespace

template <>
Suspicion random_message<Suspicion>(Random& random) {
    return {.step = static_cast<SuspicionStep>(random.number(1, 3)),
            .node = random_id(random),
            .incarnation = random.number(0, kAnyNumber),
            .counter = random.number(0, kAnyNumber)};
}

template <>
Ballot random_message<Ballot>(Random& random) {
    Ballot m{.step = static_cast<BallotStep>(random.number(1, 5)),
             .epoch = Epoch(random.number(1, kAnyNumber)),
             .number = random_ballot_number(random)};
    const bool voted = m.step == BallotStep::promise && random.coin();
    if (voted || (m.step != BallotStep::promise && random.coin())) {
        m.other = random_ballot_number(random);
    }
    if (voted || m.step == BallotStep::accept) {
        m.view.push_back(random_message<ViewFrame>(random));
        m.view.front().epoch = m.epoch;
    }
    return m;
}

template <>
Revoke random_message<Revoke>(Random& random) {
    return {.context = ContextId(random.number(0, kAnyNumber))};
}

template <>
Suspicion example<Suspicion>() {
    return {
        .step = SuspicionStep::suspected, .node = id_from(0x20), .incarnation = 6, .counter = 2};
}

template <>
Ballot example<Ballot>() {
    Ballot m{.step = BallotStep::promise,
             .epoch = Epoch(5),
             .number = {.round = 7, .proposer = id_from(0x10)},
             .other = {.round = 4, .proposer = id_from(0x20)},
             .view = {example<ViewFrame>()}};
    ViewFrame& view = m.view.front();
    view.epoch = m.epoch;
    view.members.erase(view.members.begin());
    view.spent.clear();
    view.left = {Rank(0)};
    return m;
}

template <>
NewWorld random_message<NewWorld>(Random& random) {
    NewWorld m{.context = ContextId(random.number(0, kAnyNumber)),
               .origin = {.parent = ContextId(random.number(0, kAnyNumber)),
                          .creation = random.number(0, kAnyNumber),
                          .colour = random.number(0, kAnyNumber),
                          .epoch = Epoch(random.number(0, kAnyNumber))},
               .senders = static_cast<std::uint32_t>(random.number(0, kMaxViewMembers))};
    m.members.resize(2 + random.below(6));
    for (WorldMember& one : m.members) one.node = id_from(static_cast<unsigned>(random.below(200)));
    return m;
}

template <>
NewWorld example<NewWorld>() {
    NewWorld m{.context = ContextId(0x9e3779b97f4a7c15),
               .origin = {.parent = ContextId(2), .creation = 3, .colour = 0, .epoch = Epoch(5)},
               .members = std::vector<WorldMember>(2),
               .senders = 1};
    m.members[0].node.fill(std::byte{0x11});
    m.members[1].node.fill(std::byte{0x22});
    return m;
}

template <>
Revoke example<Revoke>() {
    return {.context = ContextId(0x9e3779b97f4a7c15)};
}

}  // namespace nexar::wire::testing

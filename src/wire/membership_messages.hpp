#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nexar/error.hpp>
#include <string>
#include <tuple>
#include <vector>
#include "base/types.hpp"

#include "wire/frame.hpp"
#include "wire/seed_messages.hpp"

/// The messages with which members and seeds detect failures and agree on views. They travel on the
/// control lane between members and on the seed lane between a member and a seed. As elsewhere, no
/// message names its sender.
namespace nexar::wire {

/// Numbers are stable.
enum class SuspicionStep : std::uint8_t {
    asked = 1,      // the sender has not heard from the node for a while: do you hear from it?
    hears = 2,      // the answer: the sender heard from the node since the question
    suspected = 3,  // the sender is sure that it cannot reach the node
};

/// A statement about another node.
struct Suspicion {
    static constexpr FrameType kType = FrameType::suspicion;

    SuspicionStep step = SuspicionStep::asked;
    Id node{};
    std::uint64_t incarnation = 0;
    std::uint64_t counter = 0;  // of its last heartbeat, see Heartbeat::counter

    friend bool operator==(const Suspicion&, const Suspicion&) noexcept = default;
};

/// Orders the ballots for one view. All zero: none.
struct BallotNumber {
    std::uint64_t round = 0;
    Id proposer{};

    friend auto operator<=>(const BallotNumber&, const BallotNumber&) noexcept = default;
};

/// Numbers are stable.
enum class BallotStep : std::uint8_t {
    prepare = 1,   // a proposer asks a voter to join its ballot
    promise = 2,   // the voter joins it: it will not vote in a lower one
    accept = 3,    // the proposer asks the voter to vote for `view`
    accepted = 4,  // the voter has voted for the view of this ballot
    refused = 5,   // the voter has joined a higher ballot, or does not agree with the view
};

/// A step towards the agreement on a view (Lamport's single-decree Paxos). docs/membership.md
/// describes the protocol.
struct Ballot {
    static constexpr FrameType kType = FrameType::ballot;

    BallotStep step = BallotStep::prepare;
    Epoch epoch{};  // of the view to agree on
    BallotNumber number{};
    BallotNumber other{};  // promise: of the voter's last vote; refused: the one it has joined
    std::vector<ViewFrame> view{};  // at most one: of an accept, or of the voter's last vote

    friend bool operator==(const Ballot&, const Ballot&) = default;
};

/// The sender revoked a communicator: all its operations end, except those that agree on how to go
/// on.
struct Revoke {
    static constexpr FrameType kType = FrameType::revoke;

    ContextId context{};

    friend bool operator==(const Revoke&, const Revoke&) noexcept = default;
};

/// Numbers are stable.
enum class AgreementStep : std::uint8_t {
    state = 1,     // to the coordinator: what the sender called and which value it has stored
    proposal = 2,  // the coordinator asks the receiver to store `value`
    stored = 3,    // the answer: the sender has stored it
    decision = 4,  // `value` is final
    question = 5,  // the sender asks for the decision, if the receiver knows it
    waiting = 6,   // the coordinator answers a question: it waits for `missing`
};

/// What the members of a communicator agree on. Numbers are stable.
enum class AgreementKind : std::uint8_t {
    agree = 1,
    shrink = 2,
    exclude = 3,
    grow = 4,
    checkpoint = 5,
};

/// Numbers whose meaning only the callers know; the members agree on the largest of each.
inline constexpr std::size_t kAgreementWords = 4;
using AgreementWords = std::array<std::uint64_t, kAgreementWords>;

/// The arguments that one member passed to the agreement.
struct AgreementCall {
    AgreementKind kind = AgreementKind::agree;
    std::uint64_t flags = 0;
    std::uint64_t fingerprint = 0;  // of the arguments that must be equal on all members
    std::uint64_t creations = 0;    // communicators that the sender made from this one
    Epoch newest{};                 // the newest view that the sender knows
    AgreementWords words{};
    std::vector<Rank> excluded{};  // who takes no part; strictly ascending

    friend bool operator==(const AgreementCall&, const AgreementCall&) = default;
};

/// What the members agree on.
struct AgreementValue {
    Errc code{};              // 0, or why the calls of all members fail
    std::uint64_t flags = 0;  // those that all members set
    std::uint64_t fingerprint = 0;
    std::uint64_t creation =
        0;  // no member has made a communicator with this number or a higher one
    Epoch epoch{};
    AgreementWords words{};
    std::vector<Rank> lost{};  // members of the communicator that are not in the view; ascending
    std::string text{};        // of the error

    friend bool operator==(const AgreementValue&, const AgreementValue&) = default;
};

/// A step towards the agreement of the members of a communicator. docs/protocol.md describes the
/// protocol.
struct Agreement {
    static constexpr FrameType kType = FrameType::agreement;

    AgreementStep step = AgreementStep::state;
    ContextId context{};
    std::uint64_t number = 0;             // of the agreement in this communicator, from 0
    Epoch epoch{};                        // the sender's view; 0: it knows none
    std::vector<AgreementCall> call{};    // exactly one in a state
    Epoch stored_in{};                    // state: the view in which the sender stored `value`
    std::vector<AgreementValue> value{};  // at most one
    std::vector<Rank> missing{};          // strictly ascending

    friend bool operator==(const Agreement&, const Agreement&) = default;
};

}  // namespace nexar::wire

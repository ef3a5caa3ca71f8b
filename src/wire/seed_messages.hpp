#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "base/types.hpp"

#include "wire/frame.hpp"

/// The messages between a seed and joining nodes or members, on the seed lane, and the contents of
/// a seed's files. As elsewhere, no message names its sender.
namespace nexar::wire {

using Id = std::array<std::byte, 16>;  // of a node, a cluster or a token

/// "10.0.0.7:7400", as Address::text() writes it.
struct AddressText {
    std::string text{};

    friend bool operator==(const AddressText&, const AddressText&) = default;
};

/// Proves that the sender knows the job secret: both sides send one before anything else.
struct Proof {
    static constexpr FrameType kType = FrameType::proof;

    std::array<std::byte, 32> code{};

    friend bool operator==(const Proof&, const Proof&) noexcept = default;
};

/// Follows the Hello of a joiner.
struct JoinRequest {
    static constexpr FrameType kType = FrameType::join_request;

    Id token{};                                // all zero: the sender proved the job secret
    std::array<std::byte, 32> token_secret{};  // of the token
    std::vector<std::byte> signing_request{};  // bound to this connection
    std::string host{};                        // for display
    std::vector<AddressText> addresses{};      // where to reach the joiner, best first

    friend bool operator==(const JoinRequest&, const JoinRequest&) = default;
};

/// The identity of the joiner from now on; a Welcome follows. Also the answer to a Renewal, without
/// a Welcome.
struct Admission {
    static constexpr FrameType kType = FrameType::admission;

    Id node{};
    std::uint64_t incarnation = 0;
    std::vector<std::byte> certificate{};

    friend bool operator==(const Admission&, const Admission&) = default;
};

/// How often a token was used, including by members that have left.
struct SpentToken {
    Id token{};
    std::uint32_t uses = 1;

    friend bool operator==(const SpentToken&, const SpentToken&) noexcept = default;
};

struct ViewMember {
    Id node{};
    std::uint64_t incarnation = 0;
    Rank rank{};
    std::vector<AddressText> addresses{};
    std::array<std::byte, 32> key_hash{};  // of the public key with which it joined
    Id token{};                            // all zero: it proved the job secret
    std::string host{};                    // for display

    friend bool operator==(const ViewMember&, const ViewMember&) = default;
};

/// The members of the cluster, see nexar::View.
struct ViewFrame {
    static constexpr FrameType kType = FrameType::view;

    Epoch epoch{};  // at least 1
    Id witness{};   // all zero: none
    std::uint64_t witness_incarnation = 0;
    Rank next_rank{};                   // above those of all members
    std::vector<ViewMember> members{};  // strictly ascending by rank
    std::vector<SpentToken> spent{};    // strictly ascending by token
    std::vector<Rank> left{};           // since the view before, in good order; strictly ascending

    friend bool operator==(const ViewFrame&, const ViewFrame&) = default;
};

/// Reports progress to nodes that wait for the cluster to form.
struct Formation {
    static constexpr FrameType kType = FrameType::formation;

    std::uint32_t joined = 0;
    std::uint32_t world_size = 1;
    std::string text{};  // which members are missing, and why

    friend bool operator==(const Formation&, const Formation&) = default;
};

/// A member requests a new certificate, for the same key or another one.
struct Renewal {
    static constexpr FrameType kType = FrameType::renewal;

    std::vector<std::byte> signing_request{};  // bound to this connection

    friend bool operator==(const Renewal&, const Renewal&) = default;
};

/// The address at which a member reached another one.
struct LinkReport {
    static constexpr FrameType kType = FrameType::link_report;

    Rank rank{};  // of the other member
    AddressText address{};
    std::chrono::nanoseconds round_trip{};
    std::string why{};      // for display: the other attempts and their outcome
    std::uint8_t hops = 1;  // links between the two; 1: they are connected directly
    Rank via{};             // of the first relay; 0 if there is none

    friend bool operator==(const LinkReport&, const LinkReport&) = default;
};

struct StoredToken {
    Id id{};
    std::array<std::byte, 32> secret_hash{};  // SHA-256 of the secret
    std::uint32_t uses = 1;
    std::uint64_t created_at = 0;  // seconds since 1970
    std::uint64_t expires_at = 0;
    bool revoked = false;

    friend bool operator==(const StoredToken&, const StoredToken&) noexcept = default;
};

/// The file in which `nexar token` keeps the tokens that a seed accepts.
struct StoredTokens {
    static constexpr FrameType kType = FrameType::stored_tokens;

    std::vector<StoredToken> tokens{};  // strictly ascending by id

    friend bool operator==(const StoredTokens&, const StoredTokens&) = default;
};

/// Identifies a copy of a seed's file: where it is stored, see StateDirectory::origin().
using Origin = std::array<std::byte, 32>;

/// The file in which a seed keeps what it must know after a restart.
struct StoredSeed {
    static constexpr FrameType kType = FrameType::stored_seed;

    Id seed{};
    std::uint64_t incarnation = 0;
    Epoch epoch{};  // of the last view; 0: none
    std::uint32_t world_size = 1;
    /// The nodes that it has admitted and that are not in the view, strictly ascending by rank. The
    /// ranks are final only until there is a view: later the members assign them.
    std::vector<ViewMember> members{};
    std::vector<SpentToken> spent{};    // strictly ascending by token
    Origin origin{};                    // all zero: unknown
    Epoch least_epoch{};                // of the next cluster that this seed forms
    std::vector<ViewFrame> view{};      // at most one: the last view, while the cluster exists
    std::uint64_t promised_round = 0;   // the ballot for the next view that the seed has joined
    Id promised_by{};                   // its proposer
    std::uint64_t accepted_round = 0;   // the ballot in which the seed voted; 0: none
    Id accepted_by{};                   // its proposer
    std::vector<ViewFrame> accepted{};  // at most one: the view that it voted for

    friend bool operator==(const StoredSeed&, const StoredSeed&) = default;
};

}  // namespace nexar::wire

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

struct ViewMember {
    Id node{};
    std::uint64_t incarnation = 0;
    Rank rank{};
    std::vector<AddressText> addresses{};

    friend bool operator==(const ViewMember&, const ViewMember&) = default;
};

/// The members of the cluster, see nexar::View.
struct ViewFrame {
    static constexpr FrameType kType = FrameType::view;

    Epoch epoch{};  // at least 1
    Id witness{};   // all zero: none
    std::uint64_t witness_incarnation = 0;
    std::vector<ViewMember> members{};  // strictly ascending by rank

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
    std::string why{};  // for display: the other attempts and their outcome

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

struct StoredMember {
    ViewMember member{};
    std::array<std::byte, 32> key_hash{};  // of the public key in the certificate
    Id token{};
    std::string host{};

    friend bool operator==(const StoredMember&, const StoredMember&) = default;
};

/// How often a token was used, including by members that have left.
struct SpentToken {
    Id token{};
    std::uint32_t uses = 1;

    friend bool operator==(const SpentToken&, const SpentToken&) noexcept = default;
};

/// The file in which a seed keeps the nodes that it has admitted.
struct StoredSeed {
    static constexpr FrameType kType = FrameType::stored_seed;

    Id seed{};
    std::uint64_t incarnation = 0;
    Epoch epoch{};  // of the last published view; 0: none
    std::uint32_t world_size = 1;
    bool formed = false;                  // `members` are those of that view
    std::vector<StoredMember> members{};  // strictly ascending by rank
    std::vector<SpentToken> spent{};      // strictly ascending by token

    friend bool operator==(const StoredSeed&, const StoredSeed&) = default;
};

}  // namespace nexar::wire

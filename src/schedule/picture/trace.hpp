#pragma once

#include <cstdint>
#include <vector>

#include "schedule/algorithm.hpp"

namespace nexar::schedule {

/// One message of a Trace.
struct TracedMessage {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::uint32_t round = 0;
    std::uint32_t send = 0;               // step of the sender
    std::vector<std::uint32_t> pieces{};  // carried, ascending
    std::uint32_t contributors = 0;       // bit r: the message carries data of rank r
    bool folded = false;                  // the receiver folds it into its own data
};

/// A collective run on symbols, for people to look at: who sends which piece of the vector to whom
/// in which round, and how complete every piece is at every rank afterwards.
///
/// A piece is the largest part of the vector that always travels whole: all of it in a tree, a
/// rank's chunk in a ring. all_to_all has world^2 pieces; piece s * world + r goes from s to r.
struct Trace {
    std::uint32_t world = 1;
    std::uint32_t rounds = 0;
    std::uint32_t pieces = 1;
    std::vector<TracedMessage> messages{};  // by round, sender, order at the sender
    /// held[round][rank][piece]: how many ranks' contributions the most complete copy of the piece
    /// holds after the round; 0 if the rank does not have the piece. Round 0 is the start.
    std::vector<std::vector<std::vector<std::uint32_t>>> held{};
};

/// At most this many ranks can be traced: contributors are bits, and pictures are for people.
inline constexpr std::uint32_t kMostTraced = 8;

/// The world must not exceed kMostTraced, and the algorithm must not need a given tree.
Trace trace(const Algorithm& algorithm, std::uint32_t world, std::uint32_t root,
            const Links& links = {});

}  // namespace nexar::schedule

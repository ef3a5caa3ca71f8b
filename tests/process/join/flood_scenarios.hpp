#pragma once

#include <cstdint>

#include "support/sanitized.hpp"

namespace nexar::testing {

/// Nodes of 127.0.0.1 join a seed while an attacker begins handshakes and finishes none.
struct JoinFloodCase {
    const char* from = "";  // the address of the flood
    double per_second = kSanitized ? 150 : 600;
    std::uint64_t warm_up = kSanitized ? 100 : 400;  // handshakes before the nodes join
    int world = 8;
    int rounds = 1;
};
void nodes_join_during_a_flood(const JoinFloodCase& scenario);

}  // namespace nexar::testing

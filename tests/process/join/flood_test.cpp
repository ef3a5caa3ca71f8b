// A host without credentials begins hundreds of handshakes with a seed and finishes none, while
// honest nodes join.

#include <gtest/gtest.h>

#include "process/join/flood_scenarios.hpp"

namespace nexar::testing {
namespace {

TEST(JoinFlood, nodes_join_while_their_network_floods_the_seed_with_handshakes) {
    nodes_join_during_a_flood({.from = "127.0.0.77:0"});
}

TEST(JoinFlood, nodes_join_while_their_own_address_floods_the_seed_with_handshakes) {
    nodes_join_during_a_flood({.from = "127.0.0.1:0"});
}

}  // namespace
}  // namespace nexar::testing

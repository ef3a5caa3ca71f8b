// As flood_test.cpp, for many worlds in sequence.

#include <gtest/gtest.h>

#include "process/join/flood_scenarios.hpp"

namespace nexar::testing {
namespace {

TEST(JoinFloodSoak, worlds_form_while_their_network_floods_the_seed_with_handshakes) {
    nodes_join_during_a_flood({.from = "127.0.0.77:0", .rounds = 50});
}

TEST(JoinFloodSoak, worlds_form_while_their_own_address_floods_the_seed_with_handshakes) {
    nodes_join_during_a_flood({.from = "127.0.0.1:0", .rounds = 50});
}

}  // namespace
}  // namespace nexar::testing

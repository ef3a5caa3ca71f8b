// A server under a flood from hundreds of thousands of strangers.

#include "process/quic/scenarios.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

TEST(QuicFlood, of_spoofed_initials_costs_little_memory_and_honest_clients_connect) {
    withstands_a_flood_of_initials({.length = std::chrono::seconds(4), .seed = test_seed(71)});
}

}  // namespace
}  // namespace nexar::testing

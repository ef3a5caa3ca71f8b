// Networks that are down for a while, and addresses that change.

#include "process/quic/scenarios.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(QuicOutage, a_transfer_survives_a_network_that_is_down_500_ms_out_of_1500_ms) {
    survives_blackholes({.lasts = milliseconds(500),
                         .every = milliseconds(1500),
                         .bytes = scaled(2'000'000),
                         .holes = 4,
                         .seed = test_seed(41)});
}

TEST(QuicOutage, a_link_follows_a_port_that_changes_after_1_s) {
    survives_rebinding({.after = seconds(1), .length = seconds(3), .seed = test_seed(42)});
}

TEST(QuicOutage, a_link_follows_a_port_that_changes_every_second) {
    survives_rebinding({.every = seconds(1),
                        .length = milliseconds(4500),
                        .least_changes = 3,
                        .seed = test_seed(43)});
}

TEST(QuicOutage, a_link_follows_an_address_that_changes_every_second) {
    survives_rebinding({.every = seconds(1),
                        .address = true,
                        .length = milliseconds(4500),
                        .least_changes = 3,
                        .seed = test_seed(44)});
}

}  // namespace
}  // namespace nexar::testing

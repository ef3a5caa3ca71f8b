#pragma once

#include <string>
#include <vector>

namespace nexar::bench {

struct RelayLoadOptions {
    std::string rate = "1gbit";  // of both links of the relay, as tc writes it
    int mtu = 1500;
    double seconds = 5;  // of each phase
    bool alone = true;   // also measure each of the two alone
};

/// What the last rank received, in bytes per second, and how long small messages to it and back
/// took meanwhile, in milliseconds.
struct RelayLoad {
    double relayed_alone = 0;
    double own_alone = 0;
    // At the same time:
    double relayed = 0;
    double own = 0;
    std::vector<double> own_round_trips{};      // between the relay and the last rank
    std::vector<double> relayed_round_trips{};  // in the tunnel
};

/// Three ranks on hosts of their own, which are network namespaces: rank 0 and rank 2 have a link
/// of the given rate with rank 1 each, but none with each other. Rank 0 saturates its tunnel to
/// rank 2, rank 1 its own link to rank 2, each alone and then both at once, with small messages in
/// between.
///
/// Throws Error (unsupported) if this user may not create namespaces. Create no thread before.
RelayLoad measure_relay_load(const RelayLoadOptions& options);

}  // namespace nexar::bench

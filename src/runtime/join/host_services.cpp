#include "runtime/join/host_services.hpp"

#include <chrono>

#include "security/random_id.hpp"

namespace nexar::runtime {

HostServices HostServices::of_this_machine() {
    return {.wall_clock = [] { return std::chrono::system_clock::now(); },
            .new_key = [] { return security::KeyPair::generate(); },
            .new_node_id = [] { return security::new_node_id(); },
            .new_cluster_id = [] { return security::new_cluster_id(); }};
}

}  // namespace nexar::runtime

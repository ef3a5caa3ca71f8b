#pragma once

#include <cstddef>
#include <functional>
#include <nexar/node.hpp>

#include "control.hpp"
#include "cores.hpp"

namespace nexar::bench {

/// Two cores for two processes; the same core twice if only one is allowed. The first call must
/// come before any thread is pinned.
struct Cores {
    std::size_t first = 0;
    std::size_t second = 0;
};
Cores two_cores();

/// One side of a pair: its node, which has rank 0 (server) or 1 (client), and a control channel for
/// messages that do not belong to the measurement.
using ApiPart = std::function<void(const Node& node, Control& other)>;

struct ApiPair {
    ApiPart server{};
    ApiPart client{};
    std::size_t server_core = 0;  // where each runs when it creates its node
    std::size_t client_core = 0;
};

/// Runs both parts through the public API, the client's here and the server's in its own process,
/// which ends with the call. This process must have only one thread. Throws nexar::Error, with the
/// server's message if the server failed.
void run_api_pair(const ApiPair& pair);

}  // namespace nexar::bench

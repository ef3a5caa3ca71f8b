#pragma once

#include <cstddef>
#include <functional>
#include <nexar/node.hpp>

#include "control.hpp"
#include "cores.hpp"

namespace nexar::bench {

/// Two cores for two processes, the same one twice where only one is allowed. The first call must
/// come before anything is pinned.
struct Cores {
    std::size_t first = 0;
    std::size_t second = 0;
};
Cores two_cores();

/// One side of a pair: its node, which has rank 0 (server) or 1 (client), and its way to tell the
/// other one what the world is not to carry.
using ApiPart = std::function<void(const Node& node, Control& other)>;

struct ApiPair {
    ApiPart server{};
    ApiPart client{};
    std::size_t server_core = 0;  // where each is when its node is made
    std::size_t client_core = 0;
};

/// Runs both parts through the public API, the client's here and the server's in a process of its
/// own that ends with the call. This process must have one thread only. Throws nexar::Error, with
/// what the server says if it failed.
void run_api_pair(const ApiPair& pair);

}  // namespace nexar::bench

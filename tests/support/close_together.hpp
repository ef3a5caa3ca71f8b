#pragma once

#include <nexar/node.hpp>
#include <thread>
#include <vector>

namespace nexar {

/// Closes the nodes of a sparse cluster at the same time. One after the other, each would wait
/// until the rest agrees on a view without it, which takes longer than most tests.
inline void close_together(std::vector<Node>& nodes) {
    std::vector<std::jthread> threads;
    threads.reserve(nodes.size());
    for (Node& node : nodes) threads.emplace_back([&node] { node.close(); });
}

}  // namespace nexar

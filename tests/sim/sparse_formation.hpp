#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <nexar/log.hpp>
#include <vector>

#include "sparse_cluster.hpp"

namespace nexar::testing {

/// Forms a cluster, and expects that it takes less than 5 s of virtual time, and that all nodes
/// connect to their neighbours only.
inline void expect_formation(const SparseShape& shape) {
    set_log_level(LogLevel::off);
    const std::clock_t began = std::clock();
    SparseCluster cluster(shape);
    const auto formed = cluster.form(std::chrono::seconds(5));
    ASSERT_TRUE(formed.has_value()) << "the cluster did not form in time";
    const auto pairs = cluster.connections();
    EXPECT_EQ(pairs.size(), cluster.graph().edges());
    for (const auto& [a, b] : pairs) {
        EXPECT_TRUE(cluster.graph().adjacent(static_cast<routing::Position>(a),
                                             static_cast<routing::Position>(b)));
    }
    std::printf(
        "%zu nodes with %s formed in %.3f s of virtual time, with %.1f s of processor "
        "time and %zu connections\n",
        shape.nodes, shape.topology.c_str(), std::chrono::duration<double>(*formed).count(),
        static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC, pairs.size());
}

}  // namespace nexar::testing

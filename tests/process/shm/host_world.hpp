#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "process/p2p/child_ranks.hpp"
#include "process/p2p/member.hpp"
#include "support/child_process.hpp"
#include "support/test_cluster.hpp"

/// Worlds of separate processes on one host, connected by shared memory.
namespace nexar::testing {

struct Place {
    int rank = 0;
    int size = 0;
};

/// Joins a world of separate processes. The parent must call introduce() at the same time.
std::unique_ptr<Member> join_host_world(const TestCluster& cluster, const Channel& parent,
                                        Place place, std::string_view link = "shm",
                                        const link::LinkSettings& settings = {});

/// Collects the addresses of all ranks and sends the list to each of them.
void introduce(std::span<const Channel* const> ranks);

/// A world in which each rank is a child of the test.
class HostWorld : public ChildRanks {
public:
    using Body = std::function<void(Member&, const Channel& parent)>;

    /// Starts the ranks, each of which joins the world and then runs `body`.
    HostWorld(int size, const Body& body, std::string_view link = "shm");

private:
    TestCluster cluster_;
};

/// Waits for the order to leave, closes the node, and returns.
void leave(Member& member, const Channel& parent);

}  // namespace nexar::testing

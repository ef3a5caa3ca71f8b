#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/nexar.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/address.hpp"
#include "runtime/node_body.hpp"
#include "support/child_process.hpp"
#include "support/link_driver.hpp"
#include "support/test_cluster.hpp"

namespace nexar::testing {

/// A node of a world whose members may be in several processes: the public API on loopback.
/// Failures throw nexar::Error.
class Member {
public:
    /// Starts to listen. The loop is the node's own or shared with other nodes of this process.
    Member(const TestCluster& cluster, std::uint64_t index, const NodeOptions& options = {});
    Member(const TestCluster& cluster, std::uint64_t index, std::shared_ptr<runtime::Loop> loop,
           const NodeOptions& options = {}, const link::LinkSettings& link = {});

    Address address() const { return body_->address(); }

    /// Joins the world of these members and dials those with lower ranks. Members have shared
    /// memory only if NodeOptions::link is "shm" or all have addresses of one host.
    void form(std::span<const ::nexar::Member> members);
    /// Waits until all members are connected.
    Result<void> wait_formed();

    Node& node() noexcept { return *node_; }
    Communicator world() const { return node_->world(); }

private:
    bool shares_memory_;
    std::shared_ptr<detail::NodeBody> body_;
    std::unique_ptr<Node> node_;
};

/// A member that nobody dials, so it needs no address. Its rank is its index.
::nexar::Member dialer(std::uint64_t index);

// A world of two: the child of a test is rank 0, the test itself rank 1.

struct PairOptions {
    std::string link = "quic";
    link::LinkSettings settings{};
};
std::unique_ptr<Member> join_as_child(const TestCluster& cluster, const Channel& parent,
                                      const PairOptions& options = {});
std::unique_ptr<Member> join_as_parent(const TestCluster& cluster, const Channel& child,
                                       const PairOptions& options = {});

/// Returns the next message of the other process; throws when none arrives in time. await() also
/// throws when it is not the expected one.
std::string hear(const Channel& other, Duration within);
void await(const Channel& other, std::string_view expected, Duration within);

/// The timeout of everything that must happen, and the deadline if it starts now.
constexpr Duration kWithin = patience(std::chrono::seconds(60));
inline std::chrono::steady_clock::time_point soon() {
    return std::chrono::steady_clock::now() + kWithin;
}

/// Returns the value of a work that must complete by the deadline.
template <class T>
T finish(Work<T>& work, std::chrono::steady_clock::time_point deadline) {
    if (!work.wait_until(deadline))
        throw Error(Errc::timed_out, "an operation did not complete in time");
    return work.wait();
}

/// The resident memory of this process.
std::size_t resident_bytes();

/// The largest growth of resident memory since construction, over all calls of look().
class Growth {
public:
    Growth();

    void look();
    std::size_t most() const noexcept { return most_; }

private:
    std::size_t begin_ = 0;
    std::size_t most_ = 0;
};

}  // namespace nexar::testing

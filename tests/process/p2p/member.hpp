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

/// A node of a world whose members may live in several processes: the public API on real QUIC over
/// loopback. Failures throw nexar::Error.
class Member {
public:
    /// Listens. The loop is the node's own, or shared with others of this process.
    Member(const TestCluster& cluster, std::uint64_t index, const NodeOptions& options = {});
    Member(const TestCluster& cluster, std::uint64_t index, std::shared_ptr<runtime::Loop> loop,
           const NodeOptions& options = {}, const link::LinkSettings& link = {});

    Address address() const { return body_->address(); }

    /// Becomes a member of the world of these, and dials those of lower ranks.
    void form(std::span<const ::nexar::Member> members);
    /// Until all members are connected.
    Result<void> wait_formed();

    Node& node() noexcept { return *node_; }
    Communicator world() const { return node_->world(); }

private:
    std::shared_ptr<detail::NodeBody> body_;
    std::unique_ptr<Node> node_;
};

/// A member that nobody dials, so that it needs no address; its rank is its index.
::nexar::Member dialer(std::uint64_t index);

// A world of two: the child of a test is rank 0, the test itself rank 1.

std::unique_ptr<Member> join_as_child(const TestCluster& cluster, const Channel& parent,
                                      const link::LinkSettings& link = {});
std::unique_ptr<Member> join_as_parent(const TestCluster& cluster, const Channel& child,
                                       const link::LinkSettings& link = {});

/// What the other process says next; throws when it does not come, or is not what was expected.
std::string hear(const Channel& other, Duration within);
void await(const Channel& other, std::string_view expected, Duration within);

/// How long a test waits for what must happen, and when that time is over.
constexpr Duration kWithin = patience(std::chrono::seconds(60));
inline std::chrono::steady_clock::time_point soon() {
    return std::chrono::steady_clock::now() + kWithin;
}

/// The value of a work that must end in time.
template <class T>
T finish(Work<T>& work, std::chrono::steady_clock::time_point deadline) {
    if (!work.wait_until(deadline)) throw Error(Errc::timed_out, "an operation did not end");
    return work.wait();
}

/// Memory that this process occupies.
std::size_t resident_bytes();

/// How far it grew from here, at most, over the looks that were taken.
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

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nexar/nexar.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "process/p2p/member.hpp"
#include "support/child_process.hpp"
#include "support/unmappable_memory.hpp"

/// The deadline table: every kind of operation, with peers that are stopped, killed or cut off, and
/// with payloads of several sizes. It is independent of the link; deadline_test.cpp lists the kinds
/// of links to test.
namespace nexar::testing {

using SteadyPoint = std::chrono::steady_clock::time_point;

/// The path to one peer.
class Route {
public:
    virtual ~Route() = default;
    /// The address to dial instead of the peer's own.
    virtual Address address() const = 0;
    /// Starts or stops dropping all packets in both directions.
    virtual void cut(bool on) = 0;
};

/// A kind of link that the table runs on.
struct LinkUnderTest {
    std::string_view name;
    NodeOptions node{};
    link::LinkSettings link{};
    /// Empty if nothing sits between the ranks, so that they cannot be cut off.
    std::function<std::unique_ptr<Route>(const Address& peer)> route{};
};

LinkUnderTest quic_link();
LinkUnderTest shm_link();

enum class Fault : std::uint8_t { stopped, killed, cut_off };
std::string_view name(Fault fault) noexcept;

/// How much the machine delays the threads of this process: the time that all of them waited for a
/// processor, as the kernel counts it, plus the delays above one millisecond of a thread that wakes
/// up every millisecond.
class LocalDelay {
public:
    LocalDelay();
    ~LocalDelay();
    LocalDelay(const LocalDelay&) = delete;
    LocalDelay& operator=(const LocalDelay&) = delete;

    std::chrono::nanoseconds so_far() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A world of three. Ranks 0 and 1, the peers, are separate processes that fail together; rank 2 is
/// the test.
class FaultyWorld {
public:
    /// Call it while the test has one thread. Each peer sends rank 2 two messages of each size,
    /// with the tags of arriving(), and rank 0 starts to answer a call with the largest size.
    /// begin() then starts the fault.
    FaultyWorld(const LinkUnderTest& link, Fault fault);

    static constexpr int kMe = 2;
    static const std::array<std::size_t, 3>& sizes();
    /// The tag of a message that has started to arrive.
    static std::uint64_t arriving(std::size_t size, bool probed);

    Node& node() { return member_->node(); }
    Communicator world() { return member_->world(); }
    Work<::nexar::Payload>& answering() { return answering_; }

    void begin();
    /// Ends the fault, unless the peers were killed.
    void end();
    /// True if messages to and from both peers still arrive.
    bool talks();

private:
    struct Peer;

    void form(const LinkUnderTest& link);
    void await_arrivals();

    Fault fault_;
    TestCluster cluster_;
    std::vector<std::unique_ptr<ChildProcess>> peers_;
    std::vector<std::unique_ptr<Route>> routes_;
    std::unique_ptr<Member> member_;
    Work<::nexar::Payload> answering_;
};

/// One operation of the table, in flight.
class Row {
public:
    virtual ~Row() = default;

    virtual detail::Task* task() const = 0;
    virtual void cancel() = 0;
    /// Consumes the result. Returns the error if the operation failed.
    virtual std::optional<Error> outcome() = 0;

    std::string name{};
    bool cancels = false;  // cancel() is called at its deadline; otherwise it has a timeout
    SteadyPoint due{};     // the deadline, or the time of cancel()
    SteadyPoint ended{};
    std::vector<std::unique_ptr<UnmappableMemory>> memory{};
};

/// Starts every kind of operation with payloads of `size` bytes. Their deadlines are at `due`.
std::vector<std::unique_ptr<Row>> start_rows(FaultyWorld& world, std::size_t size, SteadyPoint due);

/// Cancels operations without a timeout at `due`, waits until all have completed, and unmaps the
/// memory of each as soon as it has. Returns false if some did not complete within `at_most` after
/// that.
bool run_rows(std::vector<std::unique_ptr<Row>>& rows, SteadyPoint due,
              std::chrono::nanoseconds at_most);

}  // namespace nexar::testing

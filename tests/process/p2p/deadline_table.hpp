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
/// with payloads of several sizes. Written once; every kind of link adds itself to the list in
/// deadline_test.cpp.
namespace nexar::testing {

using SteadyPoint = std::chrono::steady_clock::time_point;

/// The path to one peer.
class Route {
public:
    virtual ~Route() = default;
    /// Where to dial instead of the peer's own address.
    virtual Address address() const = 0;
    /// Loses everything in both directions, or nothing any more.
    virtual void cut(bool on) = 0;
};

/// A kind of link that the table runs on.
struct LinkUnderTest {
    std::string_view name;
    NodeOptions node{};
    link::LinkSettings link{};
    /// None: nothing stands between the ranks, so that they cannot be cut off.
    std::function<std::unique_ptr<Route>(const Address& peer)> route{};
};

LinkUnderTest quic_link();

enum class Trouble : std::uint8_t { stopped, killed, cut_off };
std::string_view name(Trouble trouble) noexcept;

/// How much later than they could the threads of this process run: the time that all of them waited
/// for a processor, as the kernel counts it, and the delays above a millisecond of a thread that
/// wants to run every millisecond.
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

/// A world of three in which ranks 0 and 1, the peers, are processes of their own and get into
/// trouble together; rank 2 is the test.
class TroubledWorld {
public:
    /// Made while the test has one thread. Each peer sends rank 2 two messages of each size, with
    /// the tags of arriving(), and begins to answer a call with the largest size; then the trouble
    /// begins.
    TroubledWorld(const LinkUnderTest& link, Trouble trouble);

    static constexpr int kMe = 2;
    static const std::array<std::size_t, 3>& sizes();
    /// The tag of a message that has begun to arrive.
    static std::uint64_t arriving(std::size_t size, bool probed);

    Node& node() { return member_->node(); }
    Communicator world() { return member_->world(); }
    Work<::nexar::Payload>& answering() { return answering_; }

    void begin();
    /// Ends the trouble, where it can end.
    void end();
    /// Whether messages still pass to and from both peers.
    bool talks();

private:
    struct Peer;

    void form(const LinkUnderTest& link);
    void await_arrivals();

    Trouble trouble_;
    TestCluster cluster_;
    std::vector<std::unique_ptr<ChildProcess>> peers_;
    std::vector<std::unique_ptr<Route>> routes_;
    std::unique_ptr<Member> member_;
    Work<::nexar::Payload> answering_;
};

/// One operation of the table, under way.
class Row {
public:
    virtual ~Row() = default;

    virtual detail::Task* task() const = 0;
    virtual void cancel() = 0;
    /// Takes the result; why it failed, if it did.
    virtual std::optional<Error> outcome() = 0;

    std::string name{};
    bool cancels = false;  // its deadline is a call of cancel(); else it has a timeout
    SteadyPoint due{};     // of one that is cancelled: when it was
    SteadyPoint ended{};
    std::vector<std::unique_ptr<UnmappableMemory>> memory{};
};

/// Starts every kind of operation with payloads of `size` bytes. Their deadlines are at `due`.
std::vector<std::unique_ptr<Row>> start_rows(TroubledWorld& world, std::size_t size,
                                             SteadyPoint due);

/// Cancels at `due` what has no timeout, waits until all have ended, and unmaps the memory of each
/// as soon as it has. False: some did not end within `at_most` after that.
bool run_rows(std::vector<std::unique_ptr<Row>>& rows, SteadyPoint due,
              std::chrono::nanoseconds at_most);

}  // namespace nexar::testing

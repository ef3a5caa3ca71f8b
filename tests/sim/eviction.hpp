#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "cluster.hpp"
#include "collective_call.hpp"
#include "support/pattern.hpp"

namespace nexar::testing {

/// How a node fails.
enum class Failure : std::uint8_t {
    paused,  // it gets no turns, its links stay up
    killed,  // the same, and its links break
    cut,     // nothing travels between it and the others
};
inline constexpr std::uint64_t kFailures = 3;

/// Random messages, collectives and calls in a cluster of which one node, the victim, fails and is
/// evicted by the others, each at a time of its own. Some communicators contain the victim, some do
/// not. Later the victim goes on and learns that it was evicted.
class Eviction {
public:
    Eviction(std::uint64_t seed, std::size_t nodes);

    void run(int steps);
    /// Expects what each operation may end with.
    void check() const;
    void close() { cluster_.close(); }

    std::size_t operations() const noexcept { return asked_.size(); }
    std::size_t failed() const;
    std::uint64_t trace() { return cluster_.world().trace_hash(); }

private:
    static constexpr Epoch kBefore{1};
    static constexpr Epoch kAfter{2};

    struct Group {
        std::vector<std::size_t> nodes{};  // by rank
        std::vector<engine::Context*> contexts{};
        bool has_victim = false;
        std::vector<std::unique_ptr<CollectiveCall>> collectives{};
        std::vector<std::size_t> next{};  // by rank: the next collective
    };

    /// An operation, with its memory.
    struct Asked {
        Eviction* owner = nullptr;
        std::size_t at = 0;  // node
        std::size_t group = 0;
        bool concerns_victim = false;  // its communicator contains the victim, or it is its call
        int ended = 0;
        std::optional<Error> error{};
        std::vector<std::byte> memory{};
        std::vector<std::byte> expected{};  // of a receive or a call
        port::ConstBytes shown{};
        port::Bytes region{};
        engine::SendOperation send{};
        engine::ReceiveOperation receive{};
        engine::ProbeOperation probe{};
        engine::CallOperation call{};
        engine::CollectiveOperation collective{};
        CollectiveCall* terms = nullptr;
        std::uint32_t rank = 0;  // in its group
    };

    engine::Engine& engine(std::size_t node) { return cluster_.node(node).engine(); }
    bool runs(std::size_t node) const { return node != victim_ || !failed_; }
    Asked& ask(std::size_t at, std::size_t group);
    template <class Operation>
    void start(Asked& asked, Operation& operation);

    void add_group(ContextId id, std::vector<std::size_t> nodes);
    void step();
    void message();
    void send(std::size_t group, std::uint32_t from, std::uint32_t to, std::uint64_t tag,
              std::size_t bytes);
    void receive(std::size_t group, std::uint32_t from, std::uint32_t to, std::uint64_t tag,
                 std::size_t bytes, bool from_any);
    void wait_for_ever();
    void collective(std::size_t group, std::uint32_t rank);
    void call();
    void fail();
    void evict(std::size_t node);
    void go_on();
    void finish_collectives();
    void serve_later();
    void serve(std::size_t node);
    void on_done(engine::Operation& done);
    View view(Epoch epoch, bool with_victim) const;

    std::uint64_t seed_;
    Random random_;
    SimCluster cluster_;
    std::size_t victim_;
    Failure how_;
    bool failed_ = false;
    bool serving_ = true;
    std::vector<bool> evicted_;  // by node: this node has evicted the victim
    std::vector<Group> groups_;
    engine::Function echo_{};
    std::vector<std::unique_ptr<Asked>> asked_;
    std::uint64_t next_tag_ = 1;
};

}  // namespace nexar::testing

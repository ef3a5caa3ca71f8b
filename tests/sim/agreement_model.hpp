#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/view.hpp"
#include "engine/agreements.hpp"

namespace nexar::testing {

/// 2 to 16 nodes that agree in several communicators, each with an engine::Agreements of its own.
/// Frames of a pair of nodes arrive in order, after any time. Views follow each other in one order,
/// and each node learns them at any time. Nodes crash at any step, some right after they returned
/// from an agreement. Communicators that were shrunk remain in use.
///
/// The model knows every call that was made, so it knows the only value that is right for a view.
/// The seed determines a run.
class AgreementModel {
public:
    explicit AgreementModel(std::uint64_t seed);
    ~AgreementModel();
    AgreementModel(const AgreementModel&) = delete;
    AgreementModel& operator=(const AgreementModel&) = delete;

    /// Runs until everything has ended. Returns what is wrong, if anything is.
    std::optional<std::string> run();

    bool trace = false;  // prints every step
    /// Depends on every frame that arrived.
    std::uint64_t trace_hash() const noexcept { return trace_hash_; }

    /// What happened, to see that the runs are not trivial.
    struct Counts {
        std::uint64_t returned = 0;
        std::uint64_t crashes = 0;
        std::uint64_t views = 0;
        std::uint64_t shrunk = 0;       // communicators made
        std::uint64_t differences = 0;  // calls that failed because ranks called different things
        std::uint64_t timeouts = 0;
        std::uint64_t resumed = 0;  // calls that completed an earlier one

        Counts& operator+=(const Counts& other);
    };
    const Counts& counts() const noexcept { return counts_; }

private:
    struct Call {
        wire::AgreementKind kind{};
        std::uint64_t flags = 0;
        std::uint64_t fingerprint = 0;
        std::uint64_t creations = 0;
        wire::AgreementWords words{};
        std::vector<Rank> excluded{};
    };
    struct Returned {
        std::uint64_t flags = 0;
        std::vector<Rank> lost{};
        Epoch epoch{};
        std::uint64_t creation = 0;
        wire::AgreementWords words{};

        friend bool operator==(const Returned&, const Returned&) = default;
    };
    /// What all nodes together know of a number.
    struct Number {
        std::map<Rank, Call> calls{};
        /// By fingerprint: ranks that exclude each other may both return.
        std::map<std::uint64_t, Returned> returned{};
    };
    /// A communicator.
    struct Group {
        ContextId id{};
        ContextId parent{};
        std::vector<std::size_t> members{};  // node of each rank
        std::size_t depth = 0;               // ancestors
        std::uint64_t length = 0;            // agreements that its members call
        std::map<std::uint64_t, Number> numbers{};

        std::optional<Rank> rank_of(std::size_t node) const;
    };
    struct Node;

    // The programme of the nodes.
    std::optional<Call> call_of(const Group& group, std::uint64_t number, Rank rank);
    Group& add_group(ContextId id, ContextId parent, std::vector<std::size_t> members);
    void enter(Node& node, Group& group);
    bool start_some(Node& node);
    bool start(Node& node, Group& group);
    void on_end(Node& node, engine::AgreeOperation& operation);
    void follow(Node& node, Group& group, const engine::AgreeOperation& operation);

    // What happens to them.
    void post(std::size_t from, const NodeId& to, const wire::Agreement& frame);
    bool deliver();
    void settle(Node& node);
    void crash(Node& node);
    void decide_view(bool last);
    void learn(Node& node, std::size_t view);
    void connect(std::size_t a, std::size_t b);
    void step();
    void calm_down();

    void check(const Node& node, const Group& group, const engine::AgreeOperation& operation);
    void check_all_ended();
    void say(const std::string& what) const;
    void fail(const std::string& what);
    bool in(const View& view, std::size_t node) const;

    std::uint64_t seed_;
    Random random_;
    TimePoint now_{};
    std::vector<std::unique_ptr<Node>> nodes_;
    std::map<ContextId, Group> groups_;
    std::vector<View> views_;
    std::map<std::pair<std::size_t, std::size_t>, std::deque<std::vector<std::byte>>> in_flight_;
    std::vector<std::pair<std::size_t, std::size_t>> busy_;  // pairs with frames in flight
    double crash_rate_ = 0;
    double crash_after_return_ = 0;
    double view_rate_ = 0;
    double learn_rate_ = 0;
    bool unconnected_ = false;  // pairs have no link until connect()
    std::set<std::pair<std::size_t, std::size_t>> connected_;
    double hasty_ = 0;  // share of calls with a short timeout
    std::size_t together_ = 1;
    bool calm_ = false;
    std::optional<std::string> failure_{};
    Counts counts_{};
    std::uint64_t trace_hash_ = 0;
};

}  // namespace nexar::testing

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "chaos/calls.hpp"
#include "chaos/node.hpp"
#include "chaos/rules.hpp"

namespace nexar::chaos {

/// The program of every process: rounds of checked all-reduces and messages on the newest world,
/// agreements, and checkpoints that take in those that join. After a failure it recovers as
/// documented: revoke(), shrink(), and on with those that are left.
class Workload final : public Program {
public:
    using Say = std::function<void(const std::string&)>;

    /// `say`: may be empty.
    Workload(Rules& rules, std::size_t machine, Random random, Say say);
    /// Must follow at once.
    void attach(Node& node, const sim::World& world) {
        node_ = &node;
        world_clock_ = &world;
    }

    // Program
    void viewed(const View& view) override;
    void left_behind() override;
    void entered(engine::Context& world, const std::vector<NodeId>& nodes) override;
    void ended(engine::Operation& operation) override;
    void turned(TimePoint now) override;
    std::optional<TimePoint> next_deadline() const override;

    /// Leaves at the next checkpoint.
    void leave();
    /// Ends without asking anybody, as if main() returned.
    void quit();

    /// The process has nothing left to do: it was evicted, has left, or could not join.
    bool over() const noexcept { return over_; }
    bool evicted() const noexcept { return evicted_; }
    bool leaving() const noexcept { return leaving_; }

    /// The newest world; nullptr: none yet.
    const engine::Context* world() const noexcept { return world_; }
    const std::vector<NodeId>& nodes() const noexcept { return nodes_; }
    /// Rounds that it has completed in this world, since the last count_again().
    std::uint64_t rounds() const noexcept { return rounds_; }
    void count_again() noexcept { rounds_ = 0; }
    /// Breaks P1 if an operation takes too long.
    void check_times() const;
    /// What it does now, in words.
    std::string state() const;

private:
    using Next = std::function<void()>;

    TimePoint now() const noexcept { return world_clock_->now(); }
    void say(const std::string& what) const;
    void later(Duration delay, Next next);

    // Steps: a few calls at a time, then what follows.
    void begin(std::string step, Next next);
    void start(std::unique_ptr<Call> call, const std::string& text);
    void agree(wire::AgreementKind kind, std::uint64_t flags, engine::WorldPlan plan = {});
    void finish_step();
    void check(Call& call);
    void check_receive(const Call& call);
    Call& last() noexcept { return *finished_.back(); }

    // Rounds.
    void sync();
    void think();
    void round();
    void check_sum(const Words& sum, std::uint64_t round);
    void after_round();
    void checkpoint();

    // workload_worlds.cpp
    void gather_leavers();
    void agree_on_checkpoint(std::vector<Rank> leavers);
    void await_view();
    void follow(const runtime::Outcome& agreed);
    void recover(const Error& error);
    void shrink();
    void stop();

    Rules* rules_;
    std::size_t machine_;
    Random random_;
    Say say_;
    Node* node_ = nullptr;
    const sim::World* world_clock_ = nullptr;

    engine::Context* world_ = nullptr;
    std::vector<NodeId> nodes_;
    std::uint64_t round_ = 0;
    std::uint64_t rounds_ = 0;
    bool viewed_ = false;

    std::string step_ = "joins";
    std::vector<std::unique_ptr<Call>> calls_;     // in flight
    std::vector<std::unique_ptr<Call>> finished_;  // of this step
    std::optional<Error> failure_{};               // the first one of this step
    bool starting_ = false;                        // more calls of this step follow
    Next next_{};
    std::optional<std::pair<TimePoint, Next>> alarm_{};
    std::optional<std::pair<Epoch, Next>> awaited_{};
    unsigned attempts_ = 0;  // to shrink
    bool recovering_ = false;

    bool leaving_ = false;
    bool quitting_ = false;
    bool evicted_ = false;
    bool over_ = false;
};

}  // namespace nexar::chaos

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chaos/conditions.hpp"
#include "chaos/machine.hpp"
#include "chaos/node.hpp"
#include "chaos/plan.hpp"
#include "chaos/rules.hpp"
#include "chaos/run.hpp"
#include "chaos/workload.hpp"

namespace nexar::chaos {

/// One run of a plan.
class Simulation {
public:
    explicit Simulation(const RunOptions& options);
    ~Simulation();
    RunResult run();

private:
    /// A process on a machine. The node is destroyed first: it uses the memory of the program.
    struct Process {
        std::unique_ptr<Workload> program{};
        std::unique_ptr<Node> node{};
        bool known = false;  // the conditions know its node id
    };

    // simulation.cpp
    static Address address_of(std::size_t machine);
    void say(const std::string& what) const;
    void start_seed();
    void start(std::size_t machine);
    void end(std::size_t machine, bool silently);
    bool form();
    void tick();
    void clear_up();
    bool calm();
    std::string unrest() const;
    std::string everybody() const;
    bool majority_lost() const;
    std::size_t running_voters(const View& view, std::size_t without) const;

    // faults.cpp
    void apply(const Fault& fault);
    void kill(const Fault& fault, bool silently);
    void pause(const Fault& fault);
    void slow(const Fault& fault);
    void cut(const std::vector<std::pair<std::size_t, std::size_t>>& paths, Duration lasts);
    void isolate(const Fault& fault);
    void halve(const Fault& fault);
    void storm(const Fault& fault);
    void kill_seed(const Fault& fault);
    void leave(const Fault& fault);
    void quit(const Fault& fault);
    bool is_known_without(std::size_t machine) const;
    bool may_lose(std::size_t machine) const;
    Workload* program_on(std::size_t machine) const;
    void revive_seed();

    /// Runs `undo` after the fault, unless the calm phase has undone it before.
    template <class Undo>
    void later(Duration delay, Undo undo) {
        world_.after(delay, [this, undo] {
            if (!calm_) undo();
        });
    }

    RunOptions options_;
    Plan plan_;
    sim::World world_;
    sim::DatagramNet net_;
    StateStore state_;
    Conditions conditions_;
    Rules rules_;
    SeedOptions seed_options_;
    std::unique_ptr<Seed> seed_;
    std::string join_;
    std::vector<std::unique_ptr<Process>> processes_;  // by machine
    std::vector<TimePoint> start_at_;                  // by machine: when to start a process again
    TimePoint formed_at_{};
    bool calm_ = false;
    bool has_formed_ = false;
    unsigned applied_ = 0;
};

}  // namespace nexar::chaos

#include "process/chaos/scenario.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>
#include <thread>

namespace nexar::chaos {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// No call may take longer.
constexpr std::chrono::seconds kHang{10};

const char* name(Fault::Kind kind) {
    switch (kind) {
        case Fault::Kind::kill:
            return "kill";
        case Fault::Kind::kill_two:
            return "kill_two";
        case Fault::Kind::kill_again:
            return "kill_again";
        case Fault::Kind::kill_during_join:
            return "kill_during_join";
        case Fault::Kind::kill_joiner:
            return "kill_joiner";
        case Fault::Kind::stop:
            return "stop";
        case Fault::Kind::pause:
            return "pause";
        case Fault::Kind::cut:
            return "cut";
    }
    return "unknown";
}

/// The moment of a fault is part of the schedule; nothing is awaited here.
void let_time_pass(microseconds span) {
    std::this_thread::sleep_for(span);
}

/// Throws std::runtime_error with what is wrong.
void require(const std::string& missing) {
    if (!missing.empty()) throw std::runtime_error(missing);
}

class Run {
public:
    Run(const Scenario& scenario, Networks* networks)
        : scenario_(scenario),
          networks_(networks),
          cluster_({.ranks = scenario.ranks,
                    .link = scenario.link,
                    .hammer = scenario.hammer,
                    .networks = networks}),
          spared_(&cluster_.living_at(scenario.seed)) {}

    void apply(const Fault& fault) {
        let_time_pass(fault.after);
        switch (fault.kind) {
            case Fault::Kind::kill:
                cluster_.kill(victim(fault.first));
                break;
            case Fault::Kind::kill_two:
            case Fault::Kind::kill_again:
                kill_two(fault);
                break;
            case Fault::Kind::kill_during_join:
            case Fault::Kind::kill_joiner:
                kill_during_join(fault);
                break;
            case Fault::Kind::stop:
                stop(fault);
                break;
            case Fault::Kind::pause:
                pause(fault);
                break;
            case Fault::Kind::cut:
                cut(fault);
                break;
        }
        require(cluster_.await_whole(kHang));
        require(cluster_.grow_to(static_cast<std::size_t>(scenario_.ranks), kHang));
    }

    chaos_checker::Findings finish() { return cluster_.finish(scenario_.rules); }
    std::string describe() const { return cluster_.describe(); }

private:
    /// A living process other than the spared one.
    Process& victim(std::uint64_t choice) {
        Cluster::Ranks all = cluster_.living();
        std::erase(all, spared_);
        return *all.at(choice % all.size());
    }

    void kill_two(const Fault& fault) {
        cluster_.kill(victim(fault.first));
        if (fault.kind == Fault::Kind::kill_again) let_time_pass(fault.apart);
        cluster_.kill(victim(fault.second));
    }

    void kill_during_join(const Fault& fault) {
        Process& joiner = cluster_.start_rank(cluster_.free_host());
        let_time_pass(fault.apart);
        if (fault.kind == Fault::Kind::kill_joiner) {
            cluster_.kill(joiner);
            // The seed admits processes in the order in which they ask: once another one is a
            // member, the killed one is a member too, or never will be. If it is, the members evict
            // it. Before that, two more losses could leave no majority.
            cluster_.start_rank(cluster_.free_host());
            require(cluster_.await_whole(kHang));
            return cluster_.kill(victim(fault.first));
        }
        Process* chosen = &victim(fault.first);
        if (chosen == &joiner) chosen = &victim(fault.first + 1);
        cluster_.kill(*chosen);
    }

    void stop(const Fault& fault) {
        Process& stopped = victim(fault.first);
        cluster_.stop(stopped);
        Cluster::Ranks others = cluster_.living();
        std::erase(others, &stopped);
        require(cluster_.await_world(others, kHang));
        let_time_pass(fault.apart);
        cluster_.resume(stopped);
        require(cluster_.await_evicted(stopped, kHang));
    }

    void pause(const Fault& fault) {
        Process& paused = victim(fault.first);
        cluster_.stop(paused);
        let_time_pass(fault.apart);
        cluster_.resume(paused);
    }

    void cut(const Fault& fault) {
        Cluster::Ranks off{&victim(fault.first)};
        Process* const second = &victim(fault.second);
        if (second != off[0] && scenario_.ranks >= 5) off.push_back(second);
        std::vector<int> hosts;
        for (const Process* one : off) hosts.push_back(one->host);
        networks_->cut(hosts);
        Cluster::Ranks others = cluster_.living();
        std::erase_if(others,
                      [&](Process* one) { return std::ranges::find(off, one) != off.end(); });
        require(cluster_.await_world(others, kHang));
        let_time_pass(fault.apart);
        networks_->heal();
        for (Process* one : off) require(cluster_.await_evicted(*one, kHang));
    }

    Scenario scenario_;
    Networks* networks_;
    Cluster cluster_;
    Process* spared_;
};

}  // namespace

std::string describe(const Fault& fault) {
    return fmt::format("{} {} {} after {} us, {} us apart", name(fault.kind), fault.first,
                       fault.second, fault.after.count(), fault.apart.count());
}

std::vector<Fault> schedule(std::uint64_t seed, int faults, bool with_cuts) {
    using enum Fault::Kind;
    constexpr std::array kKinds{
        kill,        kill, kill,  kill, kill_two, kill_again, kill_during_join,
        kill_joiner, stop, pause, cut,  cut};
    std::mt19937_64 random(seed);
    std::vector<Fault> all;
    all.reserve(static_cast<std::size_t>(faults));
    for (int i = 0; i < faults; ++i) {
        const std::size_t kinds = kKinds.size() - (with_cuts ? 0 : 2);
        Fault fault{.kind = kKinds.at(random() % kinds),
                    .first = random() % 1000,
                    .second = random() % 1000,
                    .after = microseconds(random() % 40'000),
                    .apart = microseconds(random() % 200'000)};
        all.push_back(fault);
    }
    return all;
}

int run_scenario(const Scenario& scenario, Networks* networks) {
    std::vector<Fault> faults = schedule(scenario.seed, scenario.cycles, scenario.with_cuts);
    const auto deadline = std::chrono::steady_clock::now() + scenario.at_most;
    int cycle = 0;
    Run run(scenario, networks);
    try {
        for (Fault& fault : faults) {
            if (std::chrono::steady_clock::now() > deadline) break;
            if (scenario.only) fault.kind = *scenario.only;
            ++cycle;
            fmt::print("cycle {}: {}\n", cycle, describe(fault));
            std::fflush(stdout);
            run.apply(fault);
        }
    } catch (const std::exception& error) {
        ADD_FAILURE() << "cycle " << cycle << " of seed " << scenario.seed << ": " << error.what();
    }
    const auto found = run.finish();
    fmt::print("{} cycles, link {}, seed {}: {}\n", cycle, scenario.link, scenario.seed,
               chaos_checker::describe(found));
    EXPECT_TRUE(found.wrong.empty()) << chaos_checker::describe(found);
    EXPECT_GT(found.sums, 0);
    EXPECT_GT(found.messages, 0);
    return cycle;
}

}  // namespace nexar::chaos

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "routing/topology.hpp"
#include "sim/membership_rules.hpp"
#include "sim/membership_world.hpp"

namespace nexar::testing {

/// What happened in a run of one seed.
struct ChaosResult {
    std::string failure{};  // empty: none
    std::uint64_t trace = 0;
    std::uint64_t steps = 0;
    unsigned faults = 0;
    std::uint64_t epochs = 0;
    bool majority_lost = false;  // so that the calm phase could prove nothing
    Duration calm{};             // until the nodes agreed
};

/// A cluster under random faults for 60 virtual seconds, then a calm phase in which it must
/// converge and notice one more failure in time. The same seed gives the same run. Under a sparse
/// topology, clusters begin with 5 to 16 members.
class MembershipChaos {
public:
    explicit MembershipChaos(std::uint64_t seed, const routing::Topology& topology = {});
    ChaosResult run();

private:
    struct Candidate {
        std::size_t machine = 0;
        std::size_t seed = 0;  // that it asks; not a seed at first
        std::array<std::byte, 16> token{};
        bool optional = false;  // another candidate has the same token
    };

    bool chance(double probability) { return plan_.chance(probability); }
    std::uint64_t below(std::uint64_t n) { return plan_.below(n); }
    Duration between(Duration least, Duration most);
    void later(Duration delay, std::function<void()> call);
    template <class Change>
    void change(Change change) {
        rules_.health_changes();
        change();
        rules_.health_changes();
    }

    std::vector<std::size_t> members() const;  // running, not evicted
    std::vector<std::size_t> seeds(bool running) const;
    std::size_t one_of(const std::vector<std::size_t>& machines);
    bool may_lose(std::size_t machine) const;
    bool strands_members(std::size_t machine) const;
    View newest_known(std::size_t machine) const;

    void fault();
    void kill_member();
    void kill_relays();
    void notice_death(std::size_t machine, double probability);
    void kill_seed();
    void restart_seed(std::size_t machine, bool intact);
    void close_member();
    void pause_member();
    void slow_member();
    void cut_pair(bool both);
    void halve();
    void swap_sides();
    void separate(const std::vector<std::size_t>& side);
    void isolate();
    void break_link();
    void leave();
    void add_candidates();
    void change_witness();
    void lossy();
    void replay_heartbeats(std::size_t machine);

    void tick();
    std::optional<Member> serve(Candidate& candidate);
    void revive_seeds();
    void calm();
    std::string disagreement() const;
    void last_failure();
    bool view_lacks(std::size_t machine, std::size_t missing) const;

    Random plan_;
    MembershipWorld world_;
    MembershipRules rules_;
    std::vector<Candidate> candidates_{};
    std::map<std::size_t, std::vector<Member>> proposed_{};  // what each seed must propose
    std::uint64_t next_token_ = 1;
    unsigned faults_ = 0;
    bool calm_ = false;
    bool lost_ = false;
    Duration converged_{};
};

}  // namespace nexar::testing

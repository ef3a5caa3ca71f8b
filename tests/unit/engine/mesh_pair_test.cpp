// Two meshes dial each other at the same time. In whatever order the network and the two ends act,
// exactly one link must remain. The test enumerates all orders: a run is a list of choices, and the
// next run changes the last choice that has an untried alternative.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "unit/engine/mesh_parts.hpp"

namespace nexar::engine {
namespace {

/// Both sides dial at once, and time passes only as an action of the run.
MeshOptions hasty() {
    MeshOptions options;
    options.deference = Duration::zero();
    options.deference_each = Duration::zero();
    return options;
}

/// Which side's dials fail. At least one side succeeds.
struct Faults {
    bool low_fails = false;
    bool high_fails = false;
    int ticks = 0;  // how often time may pass
};

/// One dial and what each side, 0 or 1, knows about it.
struct Wire {
    std::size_t dialer = 0;
    std::array<port::LinkId, 2> ids{};   // as each side knows it
    std::array<FakeLink*, 2> ends{};     // set once the link is up at that side
    std::array<std::size_t, 2> heard{};  // bytes delivered from the other end
    std::array<bool, 2> down{};
    bool broken = false;  // one end has closed it, or the dial failed
    bool fails = false;
};

class TwoMeshes {
public:
    TwoMeshes(const Faults& faults, const View& view)
        : faults_(faults), ticks_(faults.ticks), low_(0, view, hasty()), high_(1, view, hasty()) {
        low_.adopt(view);
        high_.adopt(view);
        find_dials();
    }

    struct Action {
        std::string name;
        std::function<void()> run;
    };

    /// All actions that are possible next.
    std::vector<Action> actions() {
        std::vector<Action> all;
        for (std::size_t i = 0; i < wires_.size(); ++i) add_actions_of(i, all);
        if (ticks_ > 0) {
            all.push_back({"time passes", [this] {
                               --ticks_;
                               low_.pass(hasty().grace);
                               high_.pass(hasty().grace);
                               find_dials();
                           }});
        }
        return all;
    }

    void expect_one_link() {
        EXPECT_TRUE(low_.mesh().complete());
        EXPECT_TRUE(high_.mesh().complete());
        EXPECT_NE(low_.report().dialed, high_.report().dialed);
        std::size_t whole = 0;
        for (const Wire& wire : wires_) {
            if (!wire.broken) ++whole;
            EXPECT_EQ(wire.down[0], wire.broken);
        }
        EXPECT_EQ(whole, 1U);
        EXPECT_TRUE(low_.mesh().idle());
        EXPECT_TRUE(high_.mesh().idle());
    }

private:
    MeshNode& side(std::size_t index) { return index == 0 ? low_ : high_; }

    void find_dials() {
        for (std::size_t s = 0; s < 2; ++s) {
            for (; seen_[s] < side(s).dials().size(); ++seen_[s]) {
                Wire wire;
                wire.dialer = s;
                wire.ids[s] = side(s).dials()[seen_[s]].id;
                wire.ids[1 - s] = port::LinkId(1000 + wires_.size());
                wire.fails = s == 0 ? faults_.low_fails : faults_.high_fails;
                wires_.push_back(wire);
            }
        }
    }

    bool abandoned(const Wire& wire) {
        const auto& list = side(wire.dialer).dialer().abandoned;
        return std::ranges::find(list, wire.ids[wire.dialer]) != list.end();
    }

    void add(std::vector<Action>& all, std::string_view what, std::size_t index, std::size_t s,
             std::function<void(Wire&, MeshNode&)> run) {
        all.push_back({fmt::format("{} of link {} at {}", what, index, s), [this, index, s, run] {
                           run(wires_[index], side(s));
                           find_dials();
                       }});
    }

    void add_actions_of(std::size_t index, std::vector<Action>& all) {
        const Wire& wire = wires_[index];
        const std::size_t d = wire.dialer;
        const auto closed = [&](std::size_t s) {
            return wire.ends[s] != nullptr && wire.ends[s]->closed().has_value();
        };
        const bool ends = wire.broken || wire.fails || abandoned(wire) || closed(0) || closed(1);
        for (const std::size_t s : {d, 1 - d}) {
            if (wire.down[s]) continue;
            const bool there = wire.ends[s] != nullptr;
            // A dialed link comes up at both ends, which may learn of it in either order.
            if (!there && !wire.broken && !wire.fails && !abandoned(wire)) {
                add(all, "up", index, s, [s](Wire& one, MeshNode& node) {
                    one.ends[s] = &node.up(one.ids[s], identity(s == 0 ? 1 : 0));
                });
            }
            if (ends && (there || s == d)) {
                add(all, "down", index, s, [s](Wire& one, MeshNode& node) {
                    one.broken = true;
                    one.down[s] = true;
                    node.down(one.ids[s]);
                });
            } else if (ends && wire.broken) {
                add(all, "never up", index, s, [s](Wire& one, MeshNode&) { one.down[s] = true; });
            }
            add_hearing(index, s, all);
        }
    }

    /// Delivers everything that the other end has written in one piece.
    void add_hearing(std::size_t index, std::size_t s, std::vector<Action>& all) {
        const Wire& wire = wires_[index];
        if (wire.ends[s] == nullptr || wire.ends[1 - s] == nullptr || wire.broken) return;
        if (wire.ends[s]->closed() || !wire.ends[s]->reads(Lane::control)) return;
        if (wire.ends[1 - s]->written(Lane::control).size() == wire.heard[s]) return;
        add(all, "bytes", index, s, [s](Wire& one, MeshNode& node) {
            const auto& written = one.ends[1 - s]->written(Lane::control);
            const auto fresh = port::ConstBytes(written).subspan(one.heard[s]);
            const Bytes copy(fresh.begin(), fresh.end());
            one.heard[s] = written.size();
            one.ends[s]->arrive(Lane::control, copy);
            node.pass({});
        });
    }

    Faults faults_;
    int ticks_;
    MeshNode low_;
    MeshNode high_;
    std::vector<Wire> wires_;
    std::array<std::size_t, 2> seen_{};
};

struct Enumeration {
    std::size_t runs = 0;
    std::size_t longest = 0;
};

Enumeration try_every_order(const Faults& faults) {
    constexpr std::size_t kMostSteps = 60;
    constexpr std::size_t kMostRuns = 2'000'000;
    const View view = view_of({{address("10.0.0.1:1")}, {address("10.0.0.2:1")}});
    Enumeration done;
    std::vector<std::pair<std::size_t, std::size_t>> path;  // (choice, of how many)
    do {
        TwoMeshes meshes(faults, view);
        std::string story;
        std::size_t step = 0;
        for (;; ++step) {
            const auto actions = meshes.actions();
            if (actions.empty() || step == kMostSteps) break;
            if (step == path.size()) path.emplace_back(0, actions.size());
            EXPECT_EQ(path[step].second, actions.size()) << "a run is not reproducible";
            const auto& action = actions[path[step].first];
            story += action.name + "; ";
            action.run();
        }
        EXPECT_LT(step, kMostSteps) << story;
        meshes.expect_one_link();
        if (::testing::Test::HasFailure()) {
            ADD_FAILURE() << "in the order: " << story;
            return done;
        }
        ++done.runs;
        done.longest = std::max(done.longest, step);
        while (!path.empty() && path.back().first + 1 == path.back().second) path.pop_back();
        if (!path.empty()) ++path.back().first;
    } while (!path.empty() && done.runs < kMostRuns);
    EXPECT_TRUE(path.empty()) << "too many orders to try them all";
    fmt::print("{} orders of up to {} steps\n", done.runs, done.longest);
    return done;
}

TEST(MeshPair, every_order_of_simultaneous_dials_leaves_one_link) {
    EXPECT_GT(try_every_order({}).runs, 100U);
}

TEST(MeshPair, every_order_leaves_one_link_when_only_the_lower_node_is_reachable) {
    EXPECT_GT(try_every_order({.low_fails = true}).runs, 10U);
    EXPECT_GT(try_every_order({.low_fails = true, .ticks = 2}).runs, 100U);
}

TEST(MeshPair, every_order_leaves_one_link_when_only_the_higher_node_is_reachable) {
    EXPECT_GT(try_every_order({.high_fails = true}).runs, 10U);
    EXPECT_GT(try_every_order({.high_fails = true, .ticks = 2}).runs, 100U);
}

TEST(MeshPair, every_order_leaves_one_link_when_time_passes_at_any_moment) {
    EXPECT_GT(try_every_order({.ticks = 1}).runs, 1000U);
}

}  // namespace
}  // namespace nexar::engine

#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cluster.hpp"

namespace nexar::testing {

/// A cluster on simulated links in which pairs get further links, use one or the other, and lose
/// them, all at random. A pair always keeps a link, so nothing may be lost.
class ChangingLinks final : public SimCluster {
public:
    ChangingLinks(std::uint64_t seed, std::size_t nodes, const engine::EngineOptions& options = {})
        : SimCluster(seed, nodes, options), random_(seed * 31 + 7) {}

    bool connect() {
        if (!SimCluster::connect()) return false;
        if (size() > 1) change_later();
        return true;
    }
    void close() {
        closing_ = true;
        SimCluster::close();
    }

    // How much has happened.
    int added() const noexcept { return added_; }
    int preferred() const noexcept { return preferred_; }
    int broken() const noexcept { return broken_; }

private:
    static constexpr std::size_t kMostLinks = 3;
    /// A link that is dialed is up at both ends within this time.
    static constexpr Duration kDialTime = std::chrono::milliseconds(30);
    /// Both ends know of a broken link within this time.
    static constexpr Duration kBreakTime = std::chrono::milliseconds(30);

    void change_later() {
        world().after(Duration(random_.below(2'000'000)), [this] {
            if (closing_) return;
            change();
            change_later();
        });
    }

    void change() {
        const std::size_t a = random_.below(size());
        const std::size_t b = (a + 1 + random_.below(size() - 1)) % size();
        const std::vector<port::LinkId> links = links_of(a, b);
        const std::pair<std::size_t, std::size_t> pair = std::minmax(a, b);
        const bool both = links.size() == links_of(b, a).size();
        switch (random_.below(3)) {
            case 0:
                if (links.size() >= kMostLinks || !both || world().now() < dialing_[pair]) return;
                dialing_[pair] = world().now() + kDialTime;
                carrier(a).dial(member(b));
                node(a).settle();
                ++added_;
                return;
            case 1:
                if (links.empty()) return;
                if (random_.chance(0.5)) {
                    node(a).engine().use_link(member(b), links[random_.below(links.size())]);
                } else {
                    node(a).engine().prefer(member(b), links[random_.below(links.size())]);
                }
                node(a).settle();
                ++preferred_;
                return;
            default:
                TimePoint& until = breaking_[pair];
                if (links.size() < 2 || !both || world().now() < until) return;
                until = world().now() + kBreakTime;
                break_one(a, links[random_.below(links.size())]);
        }
    }

    void break_one(std::size_t a, port::LinkId link) {
        if (random_.chance(0.5)) {
            fabric().break_link(carrier(a), link);
        } else {
            fabric().break_link(carrier(a), link, std::chrono::milliseconds(10));
        }
        ++broken_;
    }

    /// The links from `a` to `b` that `a` knows to be up.
    std::vector<port::LinkId> links_of(std::size_t a, std::size_t b) {
        std::vector<port::LinkId> found;
        for (const port::Link* const link : node(a).links()) {
            if (link->peer().node == member(b)) found.push_back(link->id());
        }
        return found;
    }

    Random random_;
    bool closing_ = false;
    int added_ = 0;
    int preferred_ = 0;
    int broken_ = 0;
    std::map<std::pair<std::size_t, std::size_t>, TimePoint> breaking_;
    std::map<std::pair<std::size_t, std::size_t>, TimePoint> dialing_;
};

}  // namespace nexar::testing

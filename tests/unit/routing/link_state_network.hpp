#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "link_state_parts.hpp"

namespace nexar::routing::link_state_tests {

/// Nodes on virtual time. Links are reliable and ordered until they are cut, which loses what is on
/// the way.
class Network {
public:
    Network(std::uint32_t size, Random& random) : random_(&random) {
        for (std::uint32_t i = 0; i < size; ++i) nodes_.push_back(std::make_unique<Node>(Rank(i)));
    }

    std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
    LinkStates& at(std::uint32_t rank) { return nodes_[rank]->states; }
    bool is_up(std::uint32_t a, std::uint32_t b) const { return links_.contains({a, b}); }

    void adopt(std::uint32_t rank, std::uint64_t epoch, const std::set<std::uint32_t>& members) {
        at(rank).adopt(now_, view_of(epoch, members), Rank(rank));
        send(rank);
    }

    void connect(std::uint32_t a, std::uint32_t b) {
        if (a == b || is_up(a, b)) return;
        for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a)}) {
            links_[{x, y}];
            at(x).connected(now_, Rank(y));
        }
        send(a);
        send(b);
    }

    void cut(std::uint32_t a, std::uint32_t b) {
        for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a)}) {
            if (links_.erase({x, y}) != 0) at(x).disconnected(Rank(y));
        }
        std::erase_if(sent_, [&](const auto& one) {
            const auto& [from, to, origin, version] = one.first;
            return (from == a && to == b) || (from == b && to == a);
        });
    }

    void down(std::uint32_t rank, const std::vector<Rank>& ranks) {
        at(rank).set_down(now_, ranks);
        send(rank);
    }

    void run_until(TimePoint end) {
        for (auto next = next_time(); next && *next <= end; next = next_time()) {
            now_ = std::max(now_, *next);
            deliver();
            for (std::uint32_t i = 0; i < size(); ++i) {
                if (at(i).next_deadline().value_or(TimePoint::max()) <= now_) send(i);
            }
        }
        now_ = end;
    }
    void run_for(Duration time) { run_until(now_ + time); }

    /// Until no node has anything to say.
    void settle() {
        const TimePoint limit = now_ + std::chrono::seconds(60);
        while (next_time() && now_ < limit) run_until(*next_time());
        ASSERT_FALSE(next_time()) << "the network does not come to rest";
    }

    std::uint64_t messages() const { return messages_; }

private:
    struct Node {
        explicit Node(Rank rank) : signer(rank), states(kCluster, signer) {}
        FakeSigner signer;
        LinkStates states;
    };
    struct Message {
        TimePoint arrival{};
        LinkStates::State state{};
    };
    using Ends = std::pair<std::uint32_t, std::uint32_t>;

    void send(std::uint32_t from) {
        while (const auto next = at(from).poll_outgoing(now_)) {
            const Ends ends{from, next->to.value()};
            ASSERT_TRUE(links_.contains(ends)) << "sent to a node that is not connected";
            auto& queue = links_.at(ends);
            const TimePoint soonest = queue.empty() ? now_ : queue.back().arrival;
            const auto delay = std::chrono::microseconds(50 + random_->below(3000));
            queue.push_back({std::max(soonest, now_ + delay), next->state});
            const auto& state = *next->state;
            const int times = ++sent_[{from, ends.second, state.origin, state.version}];
            ASSERT_EQ(times, 1) << "a version crosses a link once in each direction";
            ++messages_;
        }
    }

    std::optional<TimePoint> next_time() const {
        std::optional<TimePoint> first;
        const auto also = [&](TimePoint time) { first = first ? std::min(*first, time) : time; };
        for (const auto& [ends, queue] : links_) {
            if (!queue.empty()) also(queue.front().arrival);
        }
        for (const auto& node : nodes_) {
            if (const auto deadline = node->states.next_deadline()) also(*deadline);
        }
        return first;
    }

    void deliver() {
        for (auto& [ends, queue] : links_) {
            while (!queue.empty() && queue.front().arrival <= now_) {
                const LinkStates::State state = std::move(queue.front().state);
                queue.pop_front();
                const auto handled = at(ends.second).handle(now_, Rank(ends.first), *state);
                ASSERT_TRUE(handled) << handled.error().what();
                send(ends.second);
            }
        }
    }

    Random* random_;
    TimePoint now_{std::chrono::seconds(1)};
    std::vector<std::unique_ptr<Node>> nodes_;
    std::map<Ends, std::deque<Message>> links_;  // one in each direction
    std::map<std::tuple<std::uint32_t, std::uint32_t, Rank, std::uint64_t>, int> sent_;
    std::uint64_t messages_ = 0;
};

}  // namespace nexar::routing::link_state_tests

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "engine/agreements.hpp"

namespace nexar::engine {

inline constexpr ContextId kContext{5};

inline NodeId node_at(std::size_t index) {
    std::array<std::byte, NodeId::kBytes> bytes{};
    bytes[0] = static_cast<std::byte>(index + 1);
    return NodeId(bytes);
}

/// A few ranks in one communicator. Frames arrive in order when the test lets them.
class Ranks {
public:
    explicit Ranks(std::size_t size) {
        for (std::size_t i = 0; i < size; ++i) nodes.push_back(node_at(i));
        for (std::uint32_t i = 0; i < size; ++i) {
            ranks_.push_back(std::make_unique<One>());
            ranks_.back()->all = this;
            ranks_.back()->index = i;
            at(i).set_view(view(1));
            at(i).add(kContext, nodes, Rank(i));
        }
    }

    Agreements& at(std::size_t rank) { return ranks_[rank]->agreements; }

    /// All nodes except `without`.
    View view(std::uint64_t epoch, const std::vector<std::size_t>& without = {}) const {
        View made{.epoch = Epoch(epoch)};
        for (std::uint32_t i = 0; i < nodes.size(); ++i) {
            if (std::ranges::find(without, i) != without.end()) continue;
            made.members.push_back({.node = nodes[i], .rank = Rank(i)});
        }
        return made;
    }

    void start(std::size_t rank, AgreeOperation& operation) {
        operation.active = true;
        if (operation.timeout == Duration{}) operation.timeout = std::chrono::hours(1);
        at(rank).start(kContext, operation);
    }

    /// Delivers everything; frames of and to `silent` get lost.
    void deliver(const std::vector<std::size_t>& silent = {}) {
        while (!frames_.empty()) {
            const Frame frame = std::move(frames_.front());
            frames_.pop_front();
            const bool lost = std::ranges::find(silent, frame.to) != silent.end() ||
                              std::ranges::find(silent, frame.from) != silent.end();
            if (lost) continue;
            const auto handled = at(frame.to).handle(nodes[frame.from], frame.content);
            ASSERT_TRUE(handled) << handled.error().what();
        }
    }
    std::vector<wire::AgreementStep> in_flight() const {
        std::vector<wire::AgreementStep> steps;
        for (const Frame& frame : frames_) steps.push_back(frame.content.step);
        return steps;
    }
    void advance(Duration by) {
        now_ += by;
        for (const auto& one : ranks_) one->agreements.advance(now_);
    }

    std::vector<NodeId> nodes{};
    std::vector<std::uint64_t> creations{};  // that owners have heard of

private:
    struct Frame {
        std::size_t from = 0;
        std::size_t to = 0;
        wire::Agreement content{};
    };
    struct One final : Agreements::Owner {
        void send(const NodeId& to, const wire::Agreement& frame) override {
            const auto found = std::ranges::find(all->nodes, to);
            const auto rank = static_cast<std::size_t>(found - all->nodes.begin());
            all->frames_.push_back({index, rank, frame});
        }
        void end(AgreeOperation& operation) override { operation.active = false; }
        void agreed(ContextId context, std::uint64_t creation) override {
            EXPECT_EQ(context, kContext);
            all->creations.push_back(creation);
        }

        Ranks* all = nullptr;
        std::size_t index = 0;
        Agreements agreements{*this};
    };

    TimePoint now_{};
    std::vector<std::unique_ptr<One>> ranks_;
    std::deque<Frame> frames_;
};

}  // namespace nexar::engine

// What happens to the nodes of the model: frames, crashes and views.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "agreement_model.hpp"
#include "agreement_model_node.hpp"
#include "base/mix.hpp"
#include "wire/codec.hpp"

namespace nexar::testing {

namespace {

using namespace std::chrono_literals;

std::string text_of(const wire::Agreement& frame) {
    constexpr std::array kSteps{"",         "state",    "proposal", "stored",
                                "decision", "question", "waiting"};
    return fmt::format("{} of number {} in {:x}, epoch {}",
                       kSteps.at(static_cast<std::size_t>(frame.step)), frame.number,
                       frame.context.value(), frame.epoch.value());
}

}  // namespace

void AgreementModel::post(std::size_t from, const NodeId& to, const wire::Agreement& frame) {
    const std::size_t index = std::to_integer<std::size_t>(to.bytes()[0]) - 1;
    const std::pair pair(from, index);
    if (!nodes_[index]->alive || (unconnected_ && !connected_.contains(std::minmax(from, index)))) {
        return;
    }
    say(fmt::format("{} -> {}: {}", from, index, text_of(frame)));
    auto& queue = in_flight_[pair];
    if (queue.empty()) busy_.push_back(pair);
    queue.push_back(wire::to_bytes(frame));
}

/// Delivers one frame. Returns false if none is in flight.
bool AgreementModel::deliver() {
    if (busy_.empty()) return false;
    const std::size_t at = random_.below(busy_.size());
    const auto pair = busy_[at];
    const bool slow = mixed(seed_ ^ mixed(pair.first * 100 + pair.second)) % 4 == 0;
    if (slow && !calm_ && random_.chance(0.95)) return true;
    auto& queue = in_flight_[pair];
    const std::vector<std::byte> bytes = std::move(queue.front());
    queue.pop_front();
    if (queue.empty()) {
        busy_[at] = busy_.back();
        busy_.pop_back();
    }
    Node& node = *nodes_[pair.second];
    if (!node.alive) return true;
    const auto frame = wire::decode_frame(bytes);
    if (!frame) {
        fail(frame.error().what());
        return true;
    }
    const auto& agreement = std::get<wire::Agreement>(frame->message);
    trace_hash_ = mixed(trace_hash_ ^ mixed(pair.first * 100 + pair.second) ^ agreement.number);
    say(fmt::format("  {} <- {}: {}", pair.second, pair.first, text_of(agreement)));
    const auto handled = node.agreements.handle(node_id(pair.first), agreement);
    if (!handled) fail(handled.error().what());
    settle(node);
    return true;
}

/// The others receive at most a part of what it had sent.
void AgreementModel::crash(Node& node) {
    if (!node.alive) return;
    node.alive = false;
    say(fmt::format("{} crashes", node.index));
    ++counts_.crashes;
    for (auto& [pair, queue] : in_flight_) {
        if (pair.second == node.index) queue.clear();
        if (pair.first == node.index) queue.resize(random_.below(queue.size() + 1));
    }
    std::erase_if(busy_, [&](const auto& pair) { return in_flight_[pair].empty(); });
}

/// Removes nodes from the view; if it is the last one, all that have crashed.
void AgreementModel::decide_view(bool last) {
    View next = views_.back();
    next.epoch = Epoch(next.epoch.value() + 1 + random_.below(2));
    const auto alive = static_cast<std::size_t>(
        std::ranges::count_if(nodes_, [](const auto& node) { return node->alive; }));
    bool evicts = !last && alive > 2 && random_.chance(0.05);  // a node that lives
    for (const auto& node : nodes_) {
        if (!in(next, node->index)) continue;
        const bool gone = !node->alive && (last || random_.chance(0.7));
        if (!gone && !(node->alive && evicts && random_.chance(0.3))) continue;
        if (node->alive) evicts = false;
        std::erase_if(next.members,
                      [&](const Member& member) { return member.node == node_id(node->index); });
    }
    if (random_.chance(0.2)) {
        const NodeId returning = node_id(random_.below(nodes_.size()));
        if (next.find(returning) == nullptr) {
            next.members.push_back({.node = returning, .rank = next.next_rank});
            next.next_rank = Rank(next.next_rank.value() + 1);
        }
    }
    views_.push_back(next);
    ++counts_.views;
}

void AgreementModel::learn(Node& node, std::size_t view) {
    if (!node.alive || view <= node.view) return;
    node.view = view;
    if (!in(views_[view], node.index)) return crash(node);  // it was evicted
    say(fmt::format("{} learns view {}", node.index, views_[view].epoch.value()));
    node.agreements.set_view(views_[view]);
    settle(node);
}

void AgreementModel::connect(std::size_t a, std::size_t b) {
    if (a == b || !nodes_[a]->alive || !nodes_[b]->alive) return;
    connected_.insert(std::minmax(a, b));
    nodes_[a]->agreements.connected(node_id(b));
    nodes_[b]->agreements.connected(node_id(a));
}

void AgreementModel::step() {
    now_ += 1ms;
    Node& node = *nodes_[random_.below(nodes_.size())];
    const auto alive = std::ranges::count_if(nodes_, [](const auto& one) { return one->alive; });
    if (random_.chance(crash_rate_) && alive > 1) crash(node);
    if (random_.chance(view_rate_)) decide_view(false);
    if (!node.alive) return;
    if (random_.chance(learn_rate_) && node.view + 1 < views_.size()) {
        learn(node, node.view + 1 + random_.below(views_.size() - node.view - 1));
    }
    if (random_.chance(0.1)) {
        node.agreements.advance(now_);
        settle(node);
    }
    if (random_.chance(0.02)) connect(node.index, random_.below(nodes_.size()));
    if (random_.chance(hasty_ * 0.01) && !node.operations.empty()) {
        node.agreements.cancel(*node.operations.front());
        settle(node);
    }
    if (node.alive && random_.chance(0.2)) start_some(node);
    for (std::uint64_t i = random_.below(4); i > 0 && deliver();) --i;
}

/// No more failures: everybody learns the last view, and every agreement must end.
void AgreementModel::calm_down() {
    calm_ = true;
    // A view without a node that lives evicts it, which takes another view.
    for (int i = 0; i < 2; ++i) {
        for (const auto& node : nodes_) {
            if (!in(views_.back(), node->index)) crash(*node);
        }
        decide_view(true);
    }
    for (const auto& node : nodes_) {
        for (std::size_t i = 0; i < nodes_.size(); ++i) connect(node->index, i);
    }
    bool busy = true;
    while (busy && !failure_) {
        busy = deliver();
        for (const auto& node : nodes_) {
            if (!node->alive) continue;
            if (random_.chance(0.2) || !busy) {
                busy |= node->view + 1 < views_.size();
                learn(*node, views_.size() - 1);
            }
            if ((random_.chance(0.2) || !busy) && node->alive && start_some(*node)) busy = true;
        }
    }
}

void AgreementModel::check_all_ended() {
    for (const auto& node : nodes_) {
        if (!node->alive) continue;
        for (const auto& operation : node->operations) {
            const Group& group = groups_.at(operation->context_id);
            const Number& number = group.numbers.at(operation->number);
            bool all_called = true;
            for (std::uint32_t i = 0; i < group.members.size(); ++i) {
                if (!in(views_.back(), group.members[i])) continue;
                if (std::ranges::binary_search(operation->excluded, Rank(i))) continue;
                all_called &= number.calls.contains(Rank(i));
            }
            if (!all_called) continue;
            fail(fmt::format("node {} never returned from number {} in communicator {:x}",
                             node->index, operation->number, group.id.value()));
        }
    }
}

std::optional<std::string> AgreementModel::run() {
    const std::uint64_t steps = 100 + random_.below(700);
    for (std::uint64_t i = 0; i < steps && !failure_; ++i) step();
    if (!failure_) calm_down();
    if (!failure_) check_all_ended();
    return failure_;
}

}  // namespace nexar::testing

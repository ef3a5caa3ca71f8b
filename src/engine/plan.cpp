#include "engine/plan.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace nexar::engine {

using schedule::Dependency;
using schedule::Kind;
using schedule::Milestone;

Plan::Plan(schedule::Schedule schedule, std::uint32_t element_bytes)
    : schedule_(std::move(schedule)),
      element_bytes_(element_bytes),
      scratch_bytes_(schedule_.scratch * element_bytes),
      steps_(schedule_.steps.size()) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        const schedule::Step& step = schedule_.steps[i];
        steps_[i].bytes = step.count() * element_bytes_;
        steps_[i].segment = step.segments() == 1 ? 0 : step.segment * element_bytes_;
    }
    find_waits();
    index_messages();
}

void Plan::find_waits() {
    std::vector<std::vector<After>> after(steps_.size());
    for (std::uint32_t i = 0; i < steps_.size(); ++i) {
        PlannedStep& step = steps_[i];
        step.first_gate = static_cast<std::uint32_t>(gates_.size());
        for (const Dependency& dependency : schedule_.dependencies_of(i)) {
            // A link releases a send as a whole.
            const bool piecewise = dependency.pipelined &&
                                   dependency.event == Milestone::finished &&
                                   schedule_.steps[dependency.step].kind != Kind::send;
            if (piecewise) {
                gates_.push_back(dependency.step);
                ++step.gates;
            } else {
                ++step.waits;
            }
            after[dependency.step].push_back(
                {.step = i, .event = dependency.event, .piecewise = piecewise});
        }
    }
    for (std::uint32_t i = 0; i < steps_.size(); ++i) {
        steps_[i].first_after = static_cast<std::uint32_t>(after_.size());
        steps_[i].after = static_cast<std::uint32_t>(after[i].size());
        after_.insert(after_.end(), after[i].begin(), after[i].end());
    }
}

void Plan::index_messages() {
    std::map<std::uint32_t, std::uint32_t> sent;
    for (std::uint32_t i = 0; i < steps_.size(); ++i) {
        const schedule::Step& step = schedule_.steps[i];
        if (step.kind == Kind::send) {
            ++sent[step.peer];
            ++sends_;
        } else if (schedule::receives(step.kind)) {
            incoming_.push_back({.peer = step.peer, .message = step.message, .step = i});
        }
    }
    std::ranges::sort(incoming_, {},
                      [](const Incoming& in) { return std::pair(in.peer, in.message); });
    outgoing_.reserve(sent.size());
    for (const auto& [peer, messages] : sent) outgoing_.push_back({peer, messages});
}

std::optional<std::uint32_t> Plan::receive(std::uint32_t peer,
                                           std::uint32_t message) const noexcept {
    const auto found =
        std::ranges::lower_bound(incoming_, std::pair(peer, message), {},
                                 [](const Incoming& in) { return std::pair(in.peer, in.message); });
    if (found == incoming_.end() || found->peer != peer || found->message != message) {
        return std::nullopt;
    }
    return found->step;
}

}  // namespace nexar::engine

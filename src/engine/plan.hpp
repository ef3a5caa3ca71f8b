#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/memory_plan.hpp"
#include "schedule/choice.hpp"
#include "schedule/schedule.hpp"

namespace nexar::engine {

/// A schedule prepared for running: in bytes, with the dependencies of steps and the step of each
/// message. Immutable; all runs of the same call share it.
class Plan {
public:
    struct PlannedStep {
        std::uint64_t bytes = 0;
        std::uint64_t segment = 0;     // bytes; 0: one piece
        std::uint32_t waits = 0;       // events that must happen before it begins
        std::uint32_t first_gate = 0;  // steps that it follows piece by piece, in gates_
        std::uint32_t gates = 0;
        std::uint32_t first_after = 0;  // steps that wait for its events, in after_
        std::uint32_t after = 0;
    };
    /// A step that waits for an event of another one.
    struct After {
        std::uint32_t step = 0;
        schedule::Milestone event{};
        bool piecewise = false;
    };
    /// The messages to one peer.
    struct Outgoing {
        std::uint32_t peer = 0;
        std::uint32_t messages = 0;
    };

    Plan(schedule::Schedule schedule, std::uint32_t element_bytes);
    /// A plan in memory has no steps that exchange messages.
    explicit Plan(MemoryPlan memory)
        : element_bytes_(memory.element_bytes()), scratch_bytes_(0), memory_(std::move(memory)) {}

    /// nullptr: the plan exchanges messages.
    const MemoryPlan* memory() const noexcept { return memory_ ? &*memory_ : nullptr; }

    std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(steps_.size()); }
    const schedule::Step& step(std::uint32_t i) const noexcept { return schedule_.steps[i]; }
    const PlannedStep& ready(std::uint32_t i) const noexcept { return steps_[i]; }
    std::span<const std::uint32_t> gates(std::uint32_t i) const noexcept {
        return std::span(gates_).subspan(steps_[i].first_gate, steps_[i].gates);
    }
    std::span<const After> after(std::uint32_t i) const noexcept {
        return std::span(after_).subspan(steps_[i].first_after, steps_[i].after);
    }

    /// The step that receives a message; nullopt when there is no such message.
    std::optional<std::uint32_t> receive(std::uint32_t peer, std::uint32_t message) const noexcept;

    std::span<const Outgoing> outgoing() const noexcept { return outgoing_; }
    std::uint32_t sends() const noexcept { return sends_; }
    std::uint64_t scratch_bytes() const noexcept { return scratch_bytes_; }
    std::uint32_t element_bytes() const noexcept { return element_bytes_; }

private:
    struct Incoming {
        std::uint32_t peer = 0;
        std::uint32_t message = 0;
        std::uint32_t step = 0;
    };

    void find_waits();
    void index_messages();

    schedule::Schedule schedule_;
    std::uint32_t element_bytes_;
    std::uint64_t scratch_bytes_;
    std::uint32_t sends_ = 0;
    std::vector<PlannedStep> steps_;
    std::vector<std::uint32_t> gates_;
    std::vector<After> after_;
    std::vector<Incoming> incoming_;  // by peer and message
    std::vector<Outgoing> outgoing_;
    std::optional<MemoryPlan> memory_{};
};

}  // namespace nexar::engine

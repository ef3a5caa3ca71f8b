#include "sim/membership_text.hpp"

#include "wire/view.hpp"

namespace nexar::testing {
namespace {

std::string short_name(const NodeId& node) {
    return node.to_hex().substr(0, 4);
}

std::string text_of(const wire::BallotNumber& number) {
    return std::to_string(number.round) + "/" + short_name(NodeId(number.proposer));
}

}  // namespace

std::string text_of(const View& view) {
    std::string out = "epoch " + std::to_string(view.epoch.value()) + " ranks";
    for (const Member& member : view.members) {
        out += " " + std::to_string(member.rank.value()) + ":" + short_name(member.node) + "." +
               std::to_string(member.incarnation.value());
    }
    if (view.witness) {
        out += " witness " + short_name(view.witness->seed) + "." +
               std::to_string(view.witness->incarnation.value());
    }
    for (const Rank rank : view.left) out += " left " + std::to_string(rank.value());
    return out;
}

std::string text_of(const membership::Message& message) {
    if (const auto* const beat = std::get_if<wire::Heartbeat>(&message)) {
        return "heartbeat " + std::to_string(beat->number) + " epoch " +
               std::to_string(beat->epoch.value()) + (beat->wants_answer ? " probe" : "");
    }
    if (const auto* const suspicion = std::get_if<wire::Suspicion>(&message)) {
        constexpr std::array kSteps = {"", "asked", "hears", "suspected"};
        return std::string(kSteps[static_cast<std::size_t>(suspicion->step)]) + " " +
               short_name(NodeId(suspicion->node)) + " counter " +
               std::to_string(suspicion->counter);
    }
    if (const auto* const ballot = std::get_if<wire::Ballot>(&message)) {
        constexpr std::array kSteps = {"", "prepare", "promise", "accept", "accepted", "refused"};
        std::string out = kSteps[static_cast<std::size_t>(ballot->step)];
        out += " " + text_of(ballot->number) + " other " + text_of(ballot->other) + " epoch " +
               std::to_string(ballot->epoch.value());
        if (!ballot->view.empty()) out += " {" + text_of(wire::from_wire(ballot->view[0])) + "}";
        return out;
    }
    return "view {" + text_of(wire::from_wire(std::get<wire::ViewFrame>(message))) + "}";
}

std::string text_of(const membership::Event& event) {
    if (const auto* const decided = std::get_if<membership::Decided>(&event))
        return "DECIDED " + text_of(decided->view);
    if (const auto* const evicted = std::get_if<membership::Evicted>(&event))
        return "EVICTED by " + text_of(evicted->view);
    if (const auto* const side = std::get_if<membership::Minority>(&event))
        return side->minority ? "MINORITY" : "MAJORITY";
    if (const auto* const one = std::get_if<membership::Silent>(&event))
        return (one->silent ? "SILENT " : "HEARD ") + short_name(one->node);
    const auto& pair = std::get<membership::Unreachable>(event);
    return (pair.unreachable ? "UNREACHABLE " : "REACHABLE ") + short_name(pair.node);
}

}  // namespace nexar::testing

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "agreement_model.hpp"

namespace nexar::testing {

inline NodeId node_id(std::size_t index) {
    std::array<std::byte, NodeId::kBytes> bytes{};
    bytes[0] = static_cast<std::byte>(index + 1);
    bytes[15] = std::byte{1};
    return NodeId(bytes);
}

/// A participant. Without a link: the model carries its frames.
struct AgreementModel::Node final : engine::Agreements::Owner {
    Node(AgreementModel& owner, std::size_t number) : model(&owner), index(number) {}

    void send(const NodeId& to, const wire::Agreement& frame) override {
        model->post(index, to, frame);
    }
    void end(engine::AgreeOperation& operation) override {
        operation.active = false;
        done.push_back(&operation);
    }
    void agreed(ContextId context, std::uint64_t creation) override {
        std::uint64_t& creations = locals.at(context).creations;
        creations = std::max(creations, creation);
    }

    /// A communicator, as this node uses it.
    struct Local {
        std::uint64_t next = 0;
        std::uint64_t creations = 0;
        std::size_t pending = 0;
        bool stopped = false;
        bool again = false;  // its last call, a shrink, ended before the decision
    };

    void forget(const engine::AgreeOperation& operation) {
        std::erase_if(operations, [&](const auto& one) { return one.get() == &operation; });
    }

    AgreementModel* model;
    std::size_t index;
    engine::Agreements agreements{*this};
    bool alive = true;
    std::size_t view = 0;  // index of the last one that it knows
    std::map<ContextId, Local> locals{};
    std::vector<std::unique_ptr<engine::AgreeOperation>> operations{};  // pending, in order
    std::deque<engine::AgreeOperation*> done{};
};

}  // namespace nexar::testing

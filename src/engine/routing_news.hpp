#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "base/identity.hpp"
#include "wire/routing_messages.hpp"

namespace nexar::engine {

/// What peers say about links and paths, until the overlay and the mesh take it. Bounded: an honest
/// peer sends few, see routing::LinkStates, and what is beyond the limit is dropped.
class RoutingNews {
public:
    static constexpr std::size_t kMost = 4096;

    template <class Message>
    struct From {
        NodeId node{};
        Message message{};
    };

    void add(const NodeId& from, wire::LinkState state) {
        if (link_states_.size() < kMost) link_states_.push_back({from, std::move(state)});
    }
    void add(const NodeId& from, const wire::PathRequest& request) {
        if (path_requests_.size() < kMost) path_requests_.push_back({from, request});
    }

    std::optional<From<wire::LinkState>> poll_link_state() { return poll(link_states_); }
    std::optional<From<wire::PathRequest>> poll_path_request() { return poll(path_requests_); }

private:
    template <class Message>
    static std::optional<Message> poll(std::deque<Message>& all) {
        if (all.empty()) return std::nullopt;
        std::optional<Message> first(std::move(all.front()));
        all.pop_front();
        return first;
    }

    std::deque<From<wire::LinkState>> link_states_;
    std::deque<From<wire::PathRequest>> path_requests_;
};

}  // namespace nexar::engine

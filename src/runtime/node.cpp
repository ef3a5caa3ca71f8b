#include <nexar/node.hpp>

#include "runtime/node_body.hpp"

namespace nexar {

Node::Node(std::shared_ptr<detail::NodeBody> body) noexcept : body_(std::move(body)) {}

Node::Node(Node&&) noexcept = default;

Node& Node::operator=(Node&& other) noexcept {
    if (this == &other) return *this;
    detail::NodeBody::let_go(std::move(body_));
    body_ = std::move(other.body_);
    return *this;
}

Node::~Node() {
    detail::NodeBody::let_go(std::move(body_));
}

std::string Node::address() const {
    return body_->address().text();
}

std::vector<PeerLink> Node::peers() const {
    std::vector<PeerLink> all;
    for (const engine::PeerReport& report : body_->peers()) {
        const bool relayed = report.hops > 1;
        const bool known = report.address && !report.address->is_tunnel() && !relayed;
        all.push_back({.rank = static_cast<int>(report.rank.value()),
                       .connected = report.connected,
                       .dialed = report.dialed,
                       .hops = static_cast<int>(report.hops),
                       .via = relayed ? static_cast<int>(report.via.value()) : -1,
                       .address = known ? report.address->text() : std::string{},
                       .handshake = report.took,
                       .why = report.why,
                       .links = report.links});
    }
    return all;
}

void Node::close() {
    body_->close();
}

int Node::descriptor() const {
    return body_->progress().descriptor();
}

std::optional<std::chrono::steady_clock::time_point> Node::next_deadline() {
    const auto due = body_->progress().next_deadline();
    if (!due) return std::nullopt;
    return std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(due->time_since_epoch()));
}

void Node::poll() {
    body_->progress().poll();
}

}  // namespace nexar

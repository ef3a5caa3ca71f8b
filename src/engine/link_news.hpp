#pragma once

#include <variant>

#include "base/identity.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

/// What two members tell each other about a further link between them.
using LinkMessage = std::variant<wire::LinkOffer, wire::LinkRefusal, wire::LinkReady>;

/// A message of a peer about a further link.
struct LinkNews {
    NodeId node{};
    LinkMessage message{};
};

}  // namespace nexar::engine

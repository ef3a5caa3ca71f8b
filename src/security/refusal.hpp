#pragma once

#include <cstddef>
#include <nexar/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "security/alert.hpp"

namespace nexar::security {

/// Why we refused a peer, in two versions: for us with everything that helps to find the cause, and
/// for the peer with what a stranger may know.
struct Refusal {
    static constexpr std::size_t kMaxReasonBytes = 120;

    Refusal(Alert alert_to_send, std::string_view reason_for_peer, std::string cause,
            Errc code = Errc::unauthenticated);

    Alert alert;         // sent to the peer
    std::string reason;  // for the peer: printable, at most kMaxReasonBytes, no secrets
    Error error;         // for our log and our caller
};

/// The result of a check, or why it refuses the peer.
template <class T>
using Checked = std::variant<T, Refusal>;

}  // namespace nexar::security

#pragma once

#include <cstddef>
#include <nexar/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "security/alert.hpp"

namespace nexar::security {

/// Why a peer was not believed, said twice: to us with everything that helps to find the cause, and
/// to the peer with what a stranger may know.
struct Refusal {
    static constexpr std::size_t kMaxReasonBytes = 120;

    Refusal(Alert alert_to_send, std::string_view reason_for_peer, std::string cause,
            Errc code = Errc::unauthenticated);

    Alert alert;         // what TLS tells the peer
    std::string reason;  // for the peer: printable, at most kMaxReasonBytes, no secrets
    Error error;         // for our log and our caller
};

/// What a check found, or why it refuses.
template <class T>
using Checked = std::variant<T, Refusal>;

}  // namespace nexar::security

#pragma once

#include <cstddef>
#include <vector>

#include "control.hpp"
#include "party.hpp"

namespace nexar::bench {

/// Server: accepts `count` links on one carrier; the client closes them.
void accept_handshakes(Control& control, const Party& party, std::size_t count);

/// Client: opens and closes links one after the other, all from one carrier. Returns how long each
/// took from dial() to Up, in seconds.
std::vector<double> dial_handshakes(Control& control, const Party& party, std::size_t count);

}  // namespace nexar::bench

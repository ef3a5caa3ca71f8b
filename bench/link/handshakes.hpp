#pragma once

#include <cstddef>
#include <vector>

#include "control.hpp"
#include "party.hpp"

namespace nexar::bench {

/// Server: lets `count` links be made to one carrier, and ended by the client.
void accept_handshakes(Control& control, const Party& party, std::size_t count);

/// Client: makes and closes links one after the other, all from one carrier. How long each took
/// from dial() to Up, in seconds.
std::vector<double> dial_handshakes(Control& control, const Party& party, std::size_t count);

}  // namespace nexar::bench

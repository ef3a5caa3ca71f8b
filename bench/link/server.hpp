#pragma once

#include "control.hpp"
#include "message_ring.hpp"
#include "party.hpp"

namespace nexar::bench {

/// The body of the server process: carries out the client's orders until the order to leave.
/// Reports every failure to the client, then throws it.
void serve(Control& control, const Party& party, MessageRing& ring);

}  // namespace nexar::bench

#pragma once

#include "control.hpp"
#include "message_ring.hpp"
#include "party.hpp"

namespace nexar::bench {

/// The server process: takes part in what the client orders until it is told to leave. Every
/// failure is told to the client, then thrown.
void serve(Control& control, const Party& party, MessageRing& ring);

}  // namespace nexar::bench

#pragma once

#include <span>

#include "port/link.hpp"

namespace nexar::engine {

/// Writes a frame and the payload behind it to the eager lane; false: there is no room.
bool write_with_payload(port::Link& link, port::ConstBytes frame,
                        std::span<const port::ConstBytes> payload);

}  // namespace nexar::engine

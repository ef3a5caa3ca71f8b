#pragma once

#include <string>

#include "membership/membership.hpp"

namespace nexar::testing {

// What happens in a simulated cluster, as one line each.

std::string text_of(const View& view);
std::string text_of(const membership::Message& message);
std::string text_of(const membership::Event& event);

}  // namespace nexar::testing

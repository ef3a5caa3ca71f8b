#pragma once

#include <nexar/result.hpp>

#include "base/view.hpp"
#include "wire/seed_messages.hpp"

namespace nexar::wire {

// Converts views and members between values and their wire and file form.

ViewMember in_wire(const Member& member);
Member from_wire(const ViewMember& member);

ViewFrame in_wire(const View& view);
View from_wire(const ViewFrame& frame);

std::vector<AddressText> in_wire(const std::vector<Address>& addresses);
/// Requires texts that the codec has accepted as addresses.
std::vector<Address> from_wire(const std::vector<AddressText>& addresses);

}  // namespace nexar::wire

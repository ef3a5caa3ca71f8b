#pragma once

#include <nexar/result.hpp>
#include <span>
#include <vector>

#include "base/config.hpp"
#include "base/view.hpp"
#include "schedule/choice.hpp"

namespace nexar::runtime {

/// The parameters by which collectives choose their algorithms, from a Config of kSettings. The
/// caller fills in the links when it creates a communicator. Fails with bad_config.
Result<schedule::Profile> collective_profile(const Config& config);

/// The kinds of links between these members of a view. Members whose addresses are equal except for
/// the port are on one host; a member without addresses is on a host of its own. All members get
/// the same result, because they have the same view.
schedule::Links links_of(std::span<const Member> members);

/// All addresses of these members.
std::vector<Address> addresses_of(std::span<const Member> members);

}  // namespace nexar::runtime

#pragma once

#include <nexar/result.hpp>

#include "base/config.hpp"
#include "base/view.hpp"
#include "schedule/choice.hpp"

namespace nexar::runtime {

/// How collectives choose their algorithms, by a Config of kSettings; the links are for who makes a
/// communicator to say. Fails with bad_config.
Result<schedule::Profile> collective_profile(const Config& config);

/// What the members of a view are connected by: those are on one machine that are reached by the
/// same addresses, but for the port; one without addresses is alone. The same on all members, since
/// the view is.
schedule::Links links_of(const View& view);

}  // namespace nexar::runtime

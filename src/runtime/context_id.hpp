#pragma once

#include "base/types.hpp"

#include "base/identity.hpp"
#include "wire/messages.hpp"

namespace nexar::runtime {

/// The first 64 bits of SHA-256 over the cluster and the origin.
ContextId context_id(const ClusterId& cluster, const wire::ContextOrigin& origin);

}  // namespace nexar::runtime

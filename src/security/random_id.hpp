#pragma once

#include "base/identity.hpp"
#include "security/join_string.hpp"

namespace nexar::security {

/// New ids, from the random source of the operating system.
Result<ClusterId> new_cluster_id();
Result<NodeId> new_node_id();
Result<TokenId> new_token_id();

}  // namespace nexar::security

#pragma once

#include <nexar/result.hpp>
#include <vector>

#include "base/types.hpp"
#include "wire/seed_messages.hpp"

namespace nexar::runtime {

/// The state of a seed after an operator has removed members from its view by force, because too
/// many voters are lost to decide anything. The epoch grows by kForgottenEpochs, so that the new
/// view replaces whatever the forgotten ones may have decided. If one of them is alive after all
/// and decides with others, the cluster is split: the operator must be sure that they have ended.
/// Fails with invalid_argument if the view does not have all the ranks.
Result<wire::StoredSeed> forget_members(const wire::StoredSeed& state,
                                        const std::vector<Rank>& ranks);

}  // namespace nexar::runtime

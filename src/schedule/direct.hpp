#pragma once

#include <cstdint>

#include "schedule/builder.hpp"
#include "schedule/chunks.hpp"
#include "schedule/hosts.hpp"

/// Exchanges in one step: every member of a group sends to the others directly. There are as many
/// parts as owners, the first members of the group; part i belongs to the member at position i.
namespace nexar::schedule {

/// Each member sends every part of `in` to its owner; each owner folds its part of all members
/// along the canonical tree, into `own`, which may be its part of `in`.
void direct_reduce_scatter(Builder& builder, const Group& group, const Chunks& parts,
                           const Slice& in, const Slice& own);

/// Each owner sends its part of `whole` to all others. The member `skipped`, if any, has all parts
/// and receives nothing.
void direct_all_gather(Builder& builder, const Group& group, const Chunks& parts,
                       const Slice& whole, std::uint32_t skipped = Builder::kNone);

}  // namespace nexar::schedule

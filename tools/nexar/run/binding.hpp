#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nexar::run {

/// The processors that this process may use, in ascending order.
std::vector<std::size_t> own_processors();

/// The share of rank `local` of `count` ranks on a host. Shares are disjoint, consecutive and equal
/// up to one processor. Empty if ranks outnumber processors: then ranks are better left to the
/// scheduler.
std::vector<std::size_t> share_of(const std::vector<std::size_t>& processors, std::uint32_t local,
                                  std::uint32_t count);

/// Binds this process to these processors; does nothing if the list is empty.
void bind_to(const std::vector<std::size_t>& processors) noexcept;

}  // namespace nexar::run

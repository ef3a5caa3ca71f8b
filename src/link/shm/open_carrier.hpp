#pragma once

#include <memory>
#include <nexar/result.hpp>

#include "base/buffer_pool.hpp"
#include "link/common/carrier_options.hpp"
#include "link/shm/options.hpp"
#include "port/link.hpp"

namespace nexar::shm {

/// The row of shared memory in link/carriers.cpp.
Result<std::unique_ptr<port::Carrier>> open_carrier(BufferPool& pool, link::CarrierOptions options);

/// The options that the links of that carrier get.
LinkOptions link_options(const link::LinkSettings& settings) noexcept;

}  // namespace nexar::shm

#pragma once

#include <cstdint>

namespace nexar::detail {

/// The collectives. The numbers are stable, because the fingerprint of a call includes them.
enum class Collective : std::uint8_t {
    all_reduce,
    reduce,
    broadcast,
    all_gather,
    gather,
    scatter,
    reduce_scatter,
    all_to_all,
    scan,
    exclusive_scan,
    barrier,
};

}  // namespace nexar::detail

#pragma once

#include <cstdint>

namespace nexar::schedule {

/// The collectives. Numbers are stable: fingerprints of calls are made of them.
enum class Operation : std::uint8_t {
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

}  // namespace nexar::schedule

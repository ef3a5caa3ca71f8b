#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <nexar/result.hpp>
#include <string>
#include <vector>

#include "base/counter.hpp"

namespace nexar {

/// One counter in a snapshot().
struct CounterReading {
    std::string name{};
    std::uint64_t value = 0;
    std::string unit{};
    std::string help{};
};

/// The counters of one node; the node owns the registry. Thread-safe; add() and snapshot() take a
/// lock, counting does not.
class CounterRegistry {
public:
    static constexpr std::size_t kMaxCounters = 1024;
    static constexpr std::size_t kMaxNameLength = 64;

    /// Returns the new counter, which lives as long as the registry. Fails with invalid_argument if
    /// the name exists already or is not snake_case, and with limit_exceeded beyond kMaxCounters.
    Result<Counter*> add(CounterSpec spec);

    /// All counters, sorted by name. Each value is current, but the values are not from the same
    /// moment: counting continues meanwhile.
    std::vector<CounterReading> snapshot() const;

private:
    mutable std::mutex mutex_;
    std::map<std::string, Counter, std::less<>> counters_;
};

}  // namespace nexar

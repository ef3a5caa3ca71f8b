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

/// One counter as a snapshot() saw it.
struct CounterReading {
    std::string name{};
    std::uint64_t value = 0;
    std::string unit{};
    std::string help{};
};

/// The counters of one node, which owns it. Thread-safe; adding and reading counters take a lock,
/// counting does not.
class CounterRegistry {
public:
    static constexpr std::size_t kMaxCounters = 1024;
    static constexpr std::size_t kMaxNameLength = 64;

    /// The new counter, which lives as long as the registry. Fails with invalid_argument when the
    /// name is taken or is not snake_case, and with limit_exceeded beyond kMaxCounters.
    Result<Counter*> add(CounterSpec spec);

    /// All counters in the order of their names. Each value is current; together they are no cut
    /// through one moment, since nobody stops counting for it.
    std::vector<CounterReading> snapshot() const;

private:
    mutable std::mutex mutex_;
    std::map<std::string, Counter, std::less<>> counters_;
};

}  // namespace nexar

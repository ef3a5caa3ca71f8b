#include "base/counter_registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace nexar {

namespace {

bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_snake_case(std::string_view name) {
    return !name.empty() && is_lower(name.front()) && name.back() != '_' &&
           name.find("__") == std::string_view::npos &&
           std::ranges::all_of(name, [](char c) { return is_lower(c) || is_digit(c) || c == '_'; });
}

}  // namespace

Result<Counter*> CounterRegistry::add(CounterSpec spec) {
    if (!is_snake_case(spec.name) || spec.name.size() > kMaxNameLength) {
        return Error(Errc::invalid_argument,
                     fmt::format("\"{}\" is not a valid counter name; use 1 to {} characters in "
                                 "snake_case: a letter a-z, then a-z, 0-9 and single underscores",
                                 spec.name, kMaxNameLength));
    }
    const std::lock_guard lock(mutex_);
    if (counters_.contains(spec.name)) {
        return Error(
            Errc::invalid_argument,
            fmt::format("a counter named \"{}\" exists already; names must be unique in a registry",
                        spec.name));
    }
    if (counters_.size() >= kMaxCounters) {
        return Error(
            Errc::limit_exceeded,
            fmt::format("counter \"{}\" would be number {} in its registry, which holds at most {}",
                        spec.name, counters_.size() + 1, kMaxCounters));
    }
    std::string key = spec.name;
    return &counters_.try_emplace(std::move(key), std::move(spec)).first->second;
}

std::vector<CounterReading> CounterRegistry::snapshot() const {
    const std::lock_guard lock(mutex_);
    std::vector<CounterReading> readings;
    readings.reserve(counters_.size());
    for (const auto& [name, counter] : counters_) {
        readings.push_back({.name = name,
                            .value = counter.value(),
                            .unit = counter.spec().unit,
                            .help = counter.spec().help});
    }
    return readings;
}

}  // namespace nexar

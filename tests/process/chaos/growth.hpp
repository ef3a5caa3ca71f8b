#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "process/chaos/checker.hpp"

namespace chaos_checker {

/// What a process held when it entered a world.
struct Held {
    std::int64_t resident_kb = 0;
    std::int64_t heap = 0;
    std::int64_t mappings = 0;
    std::int64_t descriptors = 0;
};

/// Finds processes that hold more in every world.
class Growth {
public:
    /// Writes what it measures to `found`.
    Growth(const Rules& rules, Findings& found) : rules_(rules), found_(found) {}

    /// `held` is what the process of this rank held, by world.
    void check(int rank, const std::map<std::int64_t, Held>& held);

    const std::vector<std::string>& wrong() const { return wrong_; }

private:
    void check_resident(int rank, const std::map<std::int64_t, Held>& held);
    void check_handles(int rank, const std::map<std::int64_t, Held>& held);

    const Rules& rules_;
    Findings& found_;
    std::vector<std::string> wrong_{};
};

}  // namespace chaos_checker

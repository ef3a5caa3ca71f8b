#pragma once

#include <cstddef>

namespace nexar::testing {

/// Counts the heap allocations of this program by all forms of operator new, in all threads. A
/// program that links this replaces operator new; memory that libraries take with malloc() does not
/// count.
class Allocations {
public:
    /// Counts from now on.
    Allocations() noexcept;

    std::size_t count() const noexcept;
    std::size_t bytes() const noexcept;

    /// The bytes that are allocated now.
    static std::size_t in_use() noexcept;

private:
    std::size_t count_before_;
    std::size_t bytes_before_;
};

}  // namespace nexar::testing

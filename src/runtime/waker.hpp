#pragma once

#include <nexar/result.hpp>
#include <utility>

#include "base/descriptor.hpp"

namespace nexar::runtime {

/// Wakes a thread that sleeps until a descriptor is readable.
///
/// Any thread may signal. The descriptor stays readable until drain(); several signals before that
/// count as one.
class Waker {
public:
    static Result<Waker> make();

    int descriptor() const noexcept { return event_.number(); }
    void signal() const noexcept;
    void drain() const noexcept;

private:
    explicit Waker(Descriptor event) noexcept : event_(std::move(event)) {}

    Descriptor event_;  // an eventfd
};

}  // namespace nexar::runtime

#pragma once

#include <nexar/result.hpp>
#include <utility>

#include "base/descriptor.hpp"

namespace nexar::runtime {

/// Wakes a thread that sleeps until a descriptor is readable.
///
/// Any thread may signal. It stays readable until drain(); signals before that count once.
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

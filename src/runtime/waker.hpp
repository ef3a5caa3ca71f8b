#pragma once

#include <nexar/result.hpp>
#include <utility>

namespace nexar::runtime {

/// A descriptor of this process that is closed with it. Closed on exec.
class Descriptor {
public:
    Descriptor() noexcept = default;
    explicit Descriptor(int number) noexcept : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor();

    int number() const noexcept { return number_; }

private:
    int number_ = -1;
};

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

#pragma once

#include <csignal>
#include <nexar/result.hpp>
#include <optional>

#include "base/descriptor.hpp"

namespace nexar::run {

/// The signals that a launcher passes on, caught for as long as this lives: blocked, and read from
/// a descriptor. Those that this process was started to ignore stay ignored, as nohup wants it.
class CaughtSignals {
public:
    static Result<CaughtSignals> make();

    CaughtSignals(CaughtSignals&& other) noexcept = default;
    CaughtSignals& operator=(CaughtSignals&&) = delete;
    ~CaughtSignals();

    int descriptor() const noexcept { return descriptor_.number(); }
    /// The next one, if there is one.
    std::optional<int> take() const noexcept;
    /// What was blocked before.
    const sigset_t& mask_before() const noexcept { return before_; }

private:
    CaughtSignals(Descriptor descriptor, const sigset_t& before) noexcept
        : descriptor_(std::move(descriptor)), before_(before) {}

    Descriptor descriptor_;
    sigset_t before_;
};

}  // namespace nexar::run

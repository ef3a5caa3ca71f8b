#pragma once

#include <csignal>
#include <nexar/result.hpp>
#include <optional>

#include "base/descriptor.hpp"

namespace nexar::run {

/// Catches the signals that a launcher forwards, as long as the object lives: they are blocked and
/// read from a descriptor. Signals that this process ignored from the start stay ignored, for
/// nohup.
class CaughtSignals {
public:
    static Result<CaughtSignals> make();

    CaughtSignals(CaughtSignals&& other) noexcept = default;
    CaughtSignals& operator=(CaughtSignals&&) = delete;
    ~CaughtSignals();

    int descriptor() const noexcept { return descriptor_.number(); }
    /// The next pending signal, if any.
    std::optional<int> take() const noexcept;
    /// The signal mask before this object changed it.
    const sigset_t& mask_before() const noexcept { return before_; }

private:
    CaughtSignals(Descriptor descriptor, const sigset_t& before) noexcept
        : descriptor_(std::move(descriptor)), before_(before) {}

    Descriptor descriptor_;
    sigset_t before_;
};

}  // namespace nexar::run

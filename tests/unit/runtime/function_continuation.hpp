#pragma once

#include <functional>
#include <utility>

#include "runtime/progress.hpp"

namespace nexar::runtime {

/// A continuation that calls a function.
class FunctionContinuation final : public Continuation {
public:
    explicit FunctionContinuation(std::function<void()> call) : call_(std::move(call)) {}
    void run() noexcept override {
        const auto call = call_;  // the call may make the owner destroy this object
        call();
    }

private:
    std::function<void()> call_;
};

/// A submission that calls a function under the lock.
class FunctionSubmission final : public Submission {
public:
    explicit FunctionSubmission(std::function<void()> call) : call_(std::move(call)) {}
    void run_under_lock() noexcept override {
        const auto call = call_;
        call();
    }

private:
    std::function<void()> call_;
};

}  // namespace nexar::runtime

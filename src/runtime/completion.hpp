#pragma once

#include <atomic>
#include <cstdint>

namespace nexar::runtime {

class Waiter;

/// What follows a completion: user code, called by the thread that drives (or by poll() in a user's
/// loop), never under the loop's lock.
///
/// A node that its owner keeps alive until run() begins or until it was withdrawn
/// (Progress::withdraw); run() may destroy it. So that following up costs no memory: it lives in
/// the frame of a coroutine, or beside the callback.
class Continuation {
public:
    Continuation() = default;
    Continuation(const Continuation&) = delete;
    Continuation& operator=(const Continuation&) = delete;

    virtual ~Continuation() = default;

    virtual void run() noexcept = 0;

private:
    friend class ContinuationQueue;

    Continuation* next_ = nullptr;
};

/// Continuations in the order in which they became due. Guarded by the loop's lock.
class ContinuationQueue {
public:
    bool empty() const noexcept { return first_ == nullptr; }
    void push(Continuation& continuation) noexcept;
    /// The oldest, or null.
    Continuation* pop() noexcept;
    /// Takes one out of the middle; false: it is not here.
    bool remove(const Continuation& continuation) noexcept;

private:
    Continuation* first_ = nullptr;
    Continuation* last_ = nullptr;
};

/// Something that will be done once, and that one thread may wait for.
///
/// The owner may destroy it as soon as done() is true: whoever completes it touches it no more. It
/// must not be destroyed before, unless the operation that would complete it is gone too.
/// Everything that was written before Progress::complete() is visible to a thread that saw done().
class Completion {
public:
    Completion() = default;
    Completion(const Completion&) = delete;
    Completion& operator=(const Completion&) = delete;

    /// Any thread.
    bool done() const noexcept { return (state_.load(std::memory_order_acquire) & kDone) != 0; }

    /// `continuation.run()` is called once after it is done. False: it is done already, and nothing
    /// will be called. The owner's thread; one continuation at a time.
    [[nodiscard]] bool then(Continuation& continuation) noexcept;

    /// As new, for the next start of a prepared operation. It must be done, or never used.
    void rearm() noexcept;

private:
    friend class Progress;

    /// What was to be told that it is done.
    struct Interested {
        Waiter* waiter = nullptr;
        Continuation* continuation = nullptr;
    };

    static constexpr std::uintptr_t kDone = 1;
    static constexpr std::uintptr_t kContinued = 2;  // continuation_ is set
    static constexpr std::uintptr_t kFlags = kDone | kContinued;

    /// Marks it done; `this` may be gone when it returns.
    Interested finish() noexcept;

    /// False: it is done.
    bool enlist(Waiter& waiter) noexcept;
    /// False: it is done, and whoever finished it tells the waiter, or has told it.
    bool delist(Waiter& waiter) noexcept;
    /// False: there was none, or finish() took it.
    bool drop_continuation() noexcept;

    // The address of the waiter, or 0, with the flags in its low bits.
    std::atomic<std::uintptr_t> state_{0};
    Continuation* continuation_ = nullptr;  // published by kContinued
};

}  // namespace nexar::runtime

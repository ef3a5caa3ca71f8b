#pragma once

#include <atomic>
#include <cstdint>

namespace nexar::runtime {

class Waiter;

/// User code that runs after a completion. The driving thread calls it (or poll() in a user's
/// loop), never under the loop's lock.
///
/// Intrusive, so that registering it allocates nothing: it lives in a coroutine frame or next to
/// the callback. The owner keeps it alive until run() begins or until Progress::withdraw()
/// succeeded; run() may destroy it.
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
    /// Removes one from anywhere in the queue; returns false if it is not in it.
    bool remove(const Continuation& continuation) noexcept;

private:
    Continuation* first_ = nullptr;
    Continuation* last_ = nullptr;
};

/// An event that happens once and that one thread may wait for.
///
/// The owner may destroy it as soon as done() is true: the completing thread does not touch it
/// after that. It must not be destroyed earlier, unless the operation that would complete it is
/// gone too. Everything written before Progress::complete() is visible to a thread that saw done().
class Completion {
public:
    Completion() = default;
    Completion(const Completion&) = delete;
    Completion& operator=(const Completion&) = delete;

    /// Any thread may call.
    bool done() const noexcept { return (state_.load(std::memory_order_acquire) & kDone) != 0; }

    /// Registers `continuation`, whose run() is called once after completion. Returns false if it
    /// is already done; then nothing is called. For the owner's thread; one continuation at a time.
    [[nodiscard]] bool then(Continuation& continuation) noexcept;

    /// Resets it for the next start of a prepared operation. It must be done or unused.
    void rearm() noexcept;

private:
    friend class Progress;

    /// The waiter and the continuation to notify.
    struct Interested {
        Waiter* waiter = nullptr;
        Continuation* continuation = nullptr;
    };

    static constexpr std::uintptr_t kDone = 1;
    static constexpr std::uintptr_t kContinued = 2;  // continuation_ is set
    static constexpr std::uintptr_t kFlags = kDone | kContinued;

    /// Marks it done; `this` may be destroyed before finish() returns.
    Interested finish() noexcept;
    /// The same when no other thread can use it and nobody waits: no atomic exchange is needed.
    void finish_unshared() noexcept;

    /// Returns false if it is done.
    bool enlist(Waiter& waiter) noexcept;
    /// Returns false if it is done; then the completing thread has notified the waiter or is about
    /// to.
    bool delist(Waiter& waiter) noexcept;
    /// Returns false if there was none, or finish() took it.
    bool drop_continuation() noexcept;

    // The address of the waiter, or 0, with the flags in its low bits.
    std::atomic<std::uintptr_t> state_{0};
    Continuation* continuation_ = nullptr;  // published by kContinued
};

}  // namespace nexar::runtime

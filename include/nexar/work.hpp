#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <nexar/export.hpp>
#include <nexar/result.hpp>
#include <nexar/status.hpp>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace nexar {

class Message;

namespace detail {

/// An operation in progress; owned by a Work.
class Task;

struct TaskEnd {
    NEXAR_EXPORT void operator()(Task* task) const noexcept;
};
using TaskOwner = std::unique_ptr<Task, TaskEnd>;

/// A continuation that runs when a task completes; must stay valid until run() begins.
class Follower {
public:
    Follower() = default;
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;
    virtual ~Follower() = default;
    virtual void run() noexcept = 0;
};

using Deadline = std::chrono::steady_clock::time_point;

NEXAR_EXPORT bool done(const Task& task) noexcept;
/// Returns false if the deadline passed.
NEXAR_EXPORT bool wait(Task& task, const Deadline* deadline);
/// Returns the index of the first task that completed, or `tasks.size()` if the deadline passed.
NEXAR_EXPORT std::size_t wait_any(std::span<Task* const> tasks, const Deadline* deadline);
NEXAR_EXPORT void cancel(Task& task) noexcept;
/// Waits for a task whose Work is being destroyed; cancels it first if an exception is the reason.
/// In a forked child it leaves the task alone and empties the pointer.
NEXAR_EXPORT void wait_before_end(TaskOwner& task, bool unwinding) noexcept;
/// Returns false if the task has already completed; then the follower does not run.
NEXAR_EXPORT bool follow(Task& task, Follower& follower);

/// Memory that an operation owns until it is destroyed: the value that it sends or returns.
class Held {
public:
    Held() = default;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    virtual ~Held() = default;
};

// For tasks that have completed.
/// Reading the error marks it as handled; an error that nobody reads is logged.
NEXAR_EXPORT const std::optional<Error>& error(Task& task) noexcept;
NEXAR_EXPORT Status status(const Task& task) noexcept;
NEXAR_EXPORT Held& held(Task& task) noexcept;

inline Result<Status> take_status(Task& task) {
    return status(task);
}

/// True if a caller may ignore a value of this type. The result of `broadcast(n, 0).wait()` is not
/// stored in `n`, so ignoring it is a bug.
template <class T>
inline constexpr bool is_ignorable = std::is_void_v<T> || std::is_same_v<T, Status>;

/// The result of an empty Work.
template <class T>
Result<T> value_of_nothing() {
    if constexpr (std::is_void_v<T>) {
        return {};
    } else if constexpr (std::is_same_v<T, Status>) {
        return Status{.source = no_rank};
    } else {
        return Error(Errc::invalid_argument,
                     "this Work is empty, so it has no value: it was never started, was moved "
                     "from, or its value has already been retrieved");
    }
}

}  // namespace detail

/// An operation in progress. It starts before the call that returns the Work returns, and proceeds
/// whether or not a thread waits for it.
///
/// The memory passed to the operation is in use until the operation completes, that is, until
/// done() is true or a wait returns. The destructor of an incomplete Work waits for it, so that the
/// memory is never touched afterwards; during stack unwinding it cancels the operation first.
///
/// A Work is empty if it was default-constructed or moved from, or if its value has been retrieved.
/// An empty Work counts as complete: done() is true and waiting returns at once. Waiting for an
/// empty Work<> succeeds, an empty Work<Status> returns Status{.source = no_rank}, and any other
/// type fails with Errc::invalid_argument.
///
/// If a failed Work is destroyed before its result was read (wait(), result(), ...), it logs the
/// error, unless it was cancelled or this process closed the node.
///
/// Only one thread at a time may use a Work; different threads may use different Works. In a forked
/// child, destroying a Work of the parent does not wait.
template <class T = void>
class [[nodiscard]] Work {
public:
    /// Retrieves the value of a task that succeeded.
    using Taker = Result<T> (*)(detail::Task& task);

    Work() noexcept = default;
    explicit Work(detail::TaskOwner task, Taker taker = nullptr) noexcept
        : task_(std::move(task)), taker_(taker), unwinding_(std::uncaught_exceptions()) {}
    /// Converts a receive for a list of works whose values are not needed.
    template <std::same_as<Status> Other>
        requires std::is_void_v<T>
    Work(Work<Other>&& other) noexcept  // NOLINT(google-explicit-*): one wait_all() takes both
        : task_(std::move(other.task_)), unwinding_(other.unwinding_) {}
    Work(Work&&) noexcept = default;
    Work& operator=(Work&& other) noexcept {
        if (this == &other) return *this;
        finish();
        task_ = std::move(other.task_);
        taker_ = other.taker_;
        unwinding_ = other.unwinding_;
        return *this;
    }
    ~Work() { finish(); }

    /// False if the Work is empty.
    bool valid() const noexcept { return task_ != nullptr; }

    bool done() const noexcept { return !task_ || detail::done(*task_); }

    /// Waits for the operation, making progress meanwhile, and returns its value or throws
    /// nexar::Error.
    T wait()
        requires(detail::is_ignorable<T>)
    {
        await();
        return take().value();
    }
    [[nodiscard("the result of the operation is lost")]] T wait()
        requires(!detail::is_ignorable<T>)
    {
        await();
        return take().value();
    }

    /// Same as wait(), but returns the error instead of throwing it.
    Result<T> result() {
        await();
        return take();
    }

    /// Returns whether the operation has completed; the Work keeps its value. If false, the
    /// operation continues to run and to use its memory; cancel() stops it.
    bool wait_until(detail::Deadline deadline) { return !task_ || detail::wait(*task_, &deadline); }

    template <class Rep, class Period>
    bool wait_for(std::chrono::duration<Rep, Period> duration) {
        return wait_until(std::chrono::steady_clock::now() +
                          std::chrono::ceil<std::chrono::steady_clock::duration>(duration));
    }

    /// Requests cancellation. The operation completes within 100 ms, even if the peer is stopped,
    /// unreachable or dead: with Errc::cancelled, with its normal result, or, for a send that was
    /// fully transmitted and whose receiver does not respond, with Errc::outcome_unknown. After
    /// that its memory is free. docs/errors.md says under "Deadlines" what happens to the message.
    void cancel() noexcept {
        if (task_) detail::cancel(*task_);
    }

    /// Calls `callback(Result<T>)` when the operation completes: on the thread that makes progress,
    /// or immediately if it has already completed. Leaves the Work empty; the memory must stay
    /// valid until the callback runs.
    template <class Callback>
    void then(Callback callback) &&;
    /// The same, but `executor(function)` decides where and when the callback runs.
    template <class Executor, class Callback>
    void then(Executor executor, Callback callback) &&;

    std::future<T> future() &&;

    /// `co_await work` in a coroutine of any type. The coroutine resumes on the thread that makes
    /// progress.
    auto operator co_await() & noexcept { return Awaiter(*this); }
    auto operator co_await() && noexcept { return Awaiter(*this); }

    detail::Task* task() const noexcept { return task_.get(); }

private:
    class Awaiter;
    template <class>
    friend class Work;

    void await() {
        if (task_) detail::wait(*task_, nullptr);
    }

    Result<T> take() {
        if (!task_) return detail::value_of_nothing<T>();
        const detail::TaskOwner task = std::move(task_);
        if (const auto& failure = detail::error(*task)) return *failure;
        if constexpr (std::is_void_v<T>) {
            return {};
        } else {
            return taker_(*task);
        }
    }

    void finish() noexcept {
        if (!task_) return;
        if (!detail::done(*task_)) {
            detail::wait_before_end(task_, std::uncaught_exceptions() > unwinding_);
        }
        task_.reset();
    }

    detail::TaskOwner task_{};
    Taker taker_ = nullptr;
    int unwinding_ = 0;
};

template <class T>
class Work<T>::Awaiter final : public detail::Follower {
public:
    explicit Awaiter(Work& work) noexcept : work_(&work) {}

    bool await_ready() const noexcept { return work_->done(); }
    bool await_suspend(std::coroutine_handle<> awaiting) {
        awaiting_ = awaiting;
        return detail::follow(*work_->task_, *this);
    }
    T await_resume()
        requires(detail::is_ignorable<T>)
    {
        return work_->take().value();
    }
    [[nodiscard("the result of the operation is lost")]] T await_resume()
        requires(!detail::is_ignorable<T>)
    {
        return work_->take().value();
    }

    void run() noexcept override { awaiting_.resume(); }

private:
    Work* work_;
    std::coroutine_handle<> awaiting_{};
};

template <class T>
template <class Executor, class Callback>
void Work<T>::then(Executor executor, Callback callback) && {
    struct CallbackFollower final : detail::Follower {
        CallbackFollower(Work&& of, Executor&& where, Callback&& what)
            : work(std::move(of)), executor(std::move(where)), callback(std::move(what)) {}
        void run() noexcept override {
            // Shared, because executors take copyable functions.
            auto self = std::shared_ptr<CallbackFollower>(this);
            executor([self] { self->callback(self->work.take()); });
        }
        Work work;
        Executor executor;
        Callback callback;
    };
    auto call = std::make_unique<CallbackFollower>(std::move(*this), std::move(executor),
                                                   std::move(callback));
    CallbackFollower& started = *call.release();
    detail::Task* const task = started.work.task();
    if (task == nullptr || !detail::follow(*task, started)) started.run();
}

template <class T>
template <class Callback>
void Work<T>::then(Callback callback) && {
    std::move(*this).then([](auto function) { function(); }, std::move(callback));
}

template <class T>
std::future<T> Work<T>::future() && {
    auto promise = std::make_shared<std::promise<T>>();
    auto result = promise->get_future();
    std::move(*this).then([promise](Result<T> outcome) {
        if (!outcome) {
            promise->set_exception(std::make_exception_ptr(outcome.error()));
        } else if constexpr (std::is_void_v<T>) {
            promise->set_value();
        } else {
            promise->set_value(std::move(*outcome));
        }
    });
    return result;
}

}  // namespace nexar

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

/// An operation under way; what a Work holds.
class Task;

struct TaskEnd {
    NEXAR_EXPORT void operator()(Task* task) const noexcept;
};
using TaskOwner = std::unique_ptr<Task, TaskEnd>;

/// What is to happen when a task has ended; lives until run() begins.
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
/// False: the deadline passed.
NEXAR_EXPORT bool wait(Task& task, const Deadline* deadline);
/// The index of the first that has ended; `tasks.size()`: the deadline passed.
NEXAR_EXPORT std::size_t wait_any(std::span<Task* const> tasks, const Deadline* deadline);
NEXAR_EXPORT void cancel(Task& task) noexcept;
/// Waits for a task whose Work ends; cancels it first when that is because of an exception. In a
/// forked child the task is left alone, and the pointer empty.
NEXAR_EXPORT void wait_before_end(TaskOwner& task, bool unwinding) noexcept;
/// False: it has ended already, and the follower will not run.
NEXAR_EXPORT bool follow(Task& task, Follower& follower);

/// Memory that an operation owns until it is released: the value that it sends or gives back.
class Held {
public:
    Held() = default;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    virtual ~Held() = default;
};

// Of a task that has ended.
/// Whoever looks at the error answers for it: an error that nobody looks at is logged.
NEXAR_EXPORT const std::optional<Error>& error(Task& task) noexcept;
NEXAR_EXPORT Status status(const Task& task) noexcept;
NEXAR_EXPORT Held& held(Task& task) noexcept;

inline Result<Status> take_status(Task& task) {
    return status(task);
}

/// Whether nothing is lost when the value is ignored. The result of `broadcast(n, 0).wait()` is
/// not in `n`, so whoever ignores it has a bug.
template <class T>
inline constexpr bool is_ignorable = std::is_void_v<T> || std::is_same_v<T, Status>;

/// What an empty Work gives.
template <class T>
Result<T> value_of_nothing() {
    if constexpr (std::is_void_v<T>) {
        return {};
    } else if constexpr (std::is_same_v<T, Status>) {
        return Status{.source = no_rank};
    } else {
        return Error(Errc::invalid_argument,
                     "this Work is empty, so it has no value: it was never started, was moved "
                     "from, or its value was taken already");
    }
}

}  // namespace detail

/// An operation under way. It was started before the call that gave it returned, and goes on
/// whether or not anybody waits.
///
/// The memory that was given to the operation is in use until it has ended: done() is true, or any
/// kind of waiting returned. A Work that is destroyed earlier waits, so that the memory is never
/// touched afterwards; during stack unwinding it cancels first.
///
/// A Work that was never started, was moved from, or whose value was taken is empty, and counts as
/// ended: done() is true and waiting returns at once. An empty Work<> gives nothing, an empty
/// Work<Status> gives Status{.source = no_rank}, and any other one gives Errc::invalid_argument.
///
/// A Work that failed and is destroyed before anybody looked at its result (wait(), result(), ...)
/// logs the error, unless it was cancelled or its node closed here.
///
/// One thread at a time may use a Work; different ones at the same time are fine. In a forked child
/// a Work of the parent ends without waiting.
template <class T = void>
class [[nodiscard]] Work {
public:
    /// Takes the value out of a task that ended well.
    using Taker = Result<T> (*)(detail::Task& task);

    Work() noexcept = default;
    explicit Work(detail::TaskOwner task, Taker taker = nullptr) noexcept
        : task_(std::move(task)), taker_(taker), unwinding_(std::uncaught_exceptions()) {}
    /// A receive in a list of works whose values nobody needs.
    template <std::same_as<Status> Other>
        requires std::is_void_v<T>
    Work(Work<Other>&& other) noexcept  // NOLINT(google-explicit-*): as one wait_all() takes both
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

    /// Whether there is an operation: not when it is empty.
    bool valid() const noexcept { return task_ != nullptr; }

    bool done() const noexcept { return !task_ || detail::done(*task_); }

    /// Waits, makes progress meanwhile, and gives the value, or throws nexar::Error.
    T wait()
        requires(detail::is_ignorable<T>)
    {
        await();
        return take().value();
    }
    [[nodiscard("the value that the operation gives is lost")]] T wait()
        requires(!detail::is_ignorable<T>)
    {
        await();
        return take().value();
    }

    /// The same without throwing.
    Result<T> result() {
        await();
        return take();
    }

    /// Whether it has ended; the Work keeps its value. On false it goes on, and uses its memory:
    /// cancel() ends it.
    bool wait_until(detail::Deadline deadline) { return !task_ || detail::wait(*task_, &deadline); }

    template <class Rep, class Period>
    bool wait_for(std::chrono::duration<Rep, Period> duration) {
        return wait_until(std::chrono::steady_clock::now() +
                          std::chrono::ceil<std::chrono::steady_clock::duration>(duration));
    }

    /// Asks for an end. It ends within 100 ms in any case, also when the peer is stopped, cut off
    /// or dead: with Errc::cancelled, as it would have, or, if it is a send of which all was sent
    /// and whose receiver does not answer, with Errc::outcome_unknown. Then its memory is not in
    /// use any more. docs/errors.md says under "Deadlines" what becomes of the message.
    void cancel() noexcept {
        if (task_) detail::cancel(*task_);
    }

    /// Calls `callback(Result<T>)` when it has ended: on the thread that makes progress, or here if
    /// it has ended already. The Work is empty afterwards: memory must outlive the callback.
    template <class Callback>
    void then(Callback callback) &&;
    /// The same, but `executor(function)` decides where and when the callback is called.
    template <class Executor, class Callback>
    void then(Executor executor, Callback callback) &&;

    std::future<T> future() &&;

    /// `co_await work`, in a coroutine of any type, which goes on where progress is made.
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
    [[nodiscard("the value that the operation gives is lost")]] T await_resume()
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

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

// Of a task that has ended.
NEXAR_EXPORT const std::optional<Error>& error(const Task& task) noexcept;
NEXAR_EXPORT Status status(const Task& task) noexcept;
NEXAR_EXPORT Message message(Task& task);

template <class T>
T value_of(Task& task);
template <>
inline Status value_of<Status>(Task& task) {
    return status(task);
}

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
/// One thread at a time may use a Work; different ones at the same time are fine. In a forked child
/// a Work of the parent ends without waiting.
template <class T = void>
class [[nodiscard]] Work {
public:
    Work() noexcept = default;
    explicit Work(detail::TaskOwner task) noexcept
        : task_(std::move(task)), unwinding_(std::uncaught_exceptions()) {}
    Work(Work&&) noexcept = default;
    Work& operator=(Work&& other) noexcept {
        finish();
        task_ = std::move(other.task_);
        unwinding_ = other.unwinding_;
        return *this;
    }
    ~Work() { finish(); }

    /// Whether there is an operation: not when it is empty.
    bool valid() const noexcept { return task_ != nullptr; }

    bool done() const noexcept { return !task_ || detail::done(*task_); }

    /// Waits, makes progress meanwhile, and gives the value, or throws nexar::Error.
    T wait() {
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
            return detail::value_of<T>(*task);
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
    T await_resume() { return work_->take().value(); }

    void run() noexcept override { awaiting_.resume(); }

private:
    Work* work_;
    std::coroutine_handle<> awaiting_{};
};

template <class T>
template <class Executor, class Callback>
void Work<T>::then(Executor executor, Callback callback) && {
    struct Call final : detail::Follower {
        Call(Work&& of, Executor&& where, Callback&& what)
            : work(std::move(of)), executor(std::move(where)), callback(std::move(what)) {}
        void run() noexcept override {
            // Shared, because executors take copyable functions.
            auto self = std::shared_ptr<Call>(this);
            executor([self] { self->callback(self->work.take()); });
        }
        Work work;
        Executor executor;
        Callback callback;
    };
    auto call = std::make_unique<Call>(std::move(*this), std::move(executor), std::move(callback));
    Call& started = *call.release();
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

/// Waits for all, then gives their values, or throws the first error in the order of `works`. What
/// an empty one gives is said at Work.
template <class T>
auto wait_all(std::span<Work<T>> works) {
    for (Work<T>& work : works) {
        if (work.valid()) detail::wait(*work.task(), nullptr);
    }
    if constexpr (std::is_void_v<T>) {
        std::optional<Error> first;
        for (Work<T>& work : works) {
            const auto outcome = work.result();
            if (!outcome && !first) first = outcome.error();
        }
        if (first) throw Error(*first);
    } else {
        std::vector<Result<T>> outcomes;
        outcomes.reserve(works.size());
        for (Work<T>& work : works) outcomes.push_back(work.result());
        std::vector<T> values;
        values.reserve(works.size());
        for (Result<T>& outcome : outcomes) values.push_back(std::move(outcome).value());
        return values;
    }
}
template <class... T>
    requires(sizeof...(T) > 0)
void wait_all(Work<T>&... works) {
    const auto await = [](const auto& work) {
        if (work.valid()) detail::wait(*work.task(), nullptr);
    };
    (await(works), ...);
    std::optional<Error> first;
    const auto look = [&first](const auto& outcome) {
        if (!outcome && !first) first = outcome.error();
    };
    (look(works.result()), ...);
    if (first) throw Error(*first);
}

/// Waits until one has ended: its index. Empty ones do not count; nullopt: the deadline passed, or
/// all are empty, or there are none.
template <class T>
std::optional<std::size_t> wait_any(std::span<Work<T>> works,
                                    const detail::Deadline* deadline = nullptr) {
    std::vector<detail::Task*> tasks;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < works.size(); ++i) {
        if (!works[i].valid()) continue;
        tasks.push_back(works[i].task());
        places.push_back(i);
    }
    if (tasks.empty()) return std::nullopt;
    const std::size_t found = detail::wait_any(tasks, deadline);
    if (found == tasks.size()) return std::nullopt;
    return places[found];
}

/// Waits until at least one has ended: the indices of all that have.
template <class T>
std::vector<std::size_t> wait_some(std::span<Work<T>> works,
                                   const detail::Deadline* deadline = nullptr) {
    std::vector<std::size_t> ended;
    if (!wait_any(works, deadline)) return ended;
    for (std::size_t i = 0; i < works.size(); ++i) {
        if (works[i].valid() && works[i].done()) ended.push_back(i);
    }
    return ended;
}

}  // namespace nexar

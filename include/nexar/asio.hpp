#pragma once

#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <nexar/node.hpp>
#include <nexar/work.hpp>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace nexar {

/// Drives the progress of a node, and of all nodes that share its loop, from an io_context of
/// standalone Asio, with one descriptor and one timer. The node must have been created with
/// Progressing::user_loop and must outlive the driver. Use it only on the thread that runs the
/// io_context.
class AsioDriver {
public:
    AsioDriver(asio::io_context& io, Node& node)
        : node_(&node), descriptor_(io, node.descriptor()), timer_(io) {
        watch();
        set_timer();
    }
    AsioDriver(const AsioDriver&) = delete;
    AsioDriver& operator=(const AsioDriver&) = delete;

    ~AsioDriver() {
        *alive_ = false;
        descriptor_.release();  // the node owns it
    }

    /// Stops driving the node, so that io_context::run() can return when it has no other work.
    void stop() {
        // A handler that is already queued cannot be cancelled; it checks this flag.
        stopped_ = true;
        descriptor_.cancel();
        timer_.cancel();
    }

private:
    void watch() {
        descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                               [this, alive = alive_](std::error_code failure) {
                                   if (failure || !*alive) return;
                                   turn();
                                   if (!stopped_) watch();
                               });
    }

    void set_timer() {
        const auto due = node_->next_deadline();
        if (due == armed_) return;
        armed_ = due;
        timer_.cancel();
        if (!due) return;
        timer_.expires_at(*due);
        timer_.async_wait([this, alive = alive_](std::error_code failure) {
            if (failure || !*alive) return;
            armed_.reset();
            turn();
        });
    }

    void turn() {
        if (stopped_) return;
        node_->poll();
        if (!stopped_) set_timer();
    }

    Node* node_;
    asio::posix::stream_descriptor descriptor_;
    asio::steady_timer timer_;
    std::optional<std::chrono::steady_clock::time_point> armed_{};
    bool stopped_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

namespace detail {
template <class T>
struct AsioSignature {
    using type = void(std::exception_ptr, T);
};
template <>
struct AsioSignature<void> {
    using type = void(std::exception_ptr);
};
}  // namespace detail

/// Waits for a Work as an Asio operation: `token` is a callback, use_future, use_awaitable, ... A
/// failure is passed as nexar::Error in the exception_ptr. T must be default-constructible. The
/// handler runs on its associated executor (asio::bind_executor), or else on the system executor.
template <class T, class Token>
auto async_wait(Work<T> work, Token&& token) {
    const auto start = [](auto handler, Work<T> started) {
        const auto executor = asio::get_associated_executor(handler);
        // Keeps io_context::run() from returning while the handler waits.
        auto guard = asio::make_work_guard(executor);
        std::move(started).then(
            [executor](auto function) { asio::post(executor, std::move(function)); },
            [handler = std::move(handler), guard = std::move(guard)](Result<T> outcome) mutable {
                std::exception_ptr failure;
                if (!outcome) failure = std::make_exception_ptr(outcome.error());
                if constexpr (std::is_void_v<T>) {
                    std::move(handler)(failure);
                } else {
                    std::move(handler)(failure, outcome ? std::move(*outcome) : T{});
                }
            });
    };
    return asio::async_initiate<Token, typename detail::AsioSignature<T>::type>(start, token,
                                                                                std::move(work));
}

}  // namespace nexar

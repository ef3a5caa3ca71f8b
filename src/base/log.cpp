#include "base/log.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <span>

#include "base/printable.hpp"

namespace nexar {

namespace detail {

constinit std::atomic<LogLevel> log_threshold{LogLevel::warning};

}  // namespace detail

namespace {

constexpr std::size_t kTextLimit = 1024;
constexpr std::int64_t kSecondNs = 1'000'000'000;

constinit std::atomic<bool> level_is_pinned{false};
constinit std::atomic<std::int64_t> interval_ns{kSecondNs / LogOptions{}.lines_per_second};
constinit std::atomic<const Clock*> replaced_clock{nullptr};

constinit std::atomic<std::uint64_t> lost_suppressed{0};
constinit std::atomic<std::uint64_t> lost_reentrant{0};
constinit std::atomic<std::uint64_t> lost_failed{0};

/// True while this thread runs a sink, and so holds the outlet's mutex.
constinit thread_local bool inside_sink = false;

void count(std::atomic<std::uint64_t>& counter) noexcept {
    counter.fetch_add(1, std::memory_order_relaxed);
}

TimePoint log_now() noexcept {
    const Clock* const clock = replaced_clock.load(std::memory_order_acquire);
    return clock != nullptr ? clock->now() : SteadyClock().now();
}

/// Issues one write per line, so that lines of threads, and of processes that share a pipe, do not
/// interleave.
void write_to_standard_error(const LogRecord& record) {
    std::array<char, kTextLimit + 128> line;  // NOLINT(*-member-init): filled below
    char* end = line.data();
    const auto append = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
        const auto room = static_cast<std::size_t>(line.data() + line.size() - 1 - end);
        end = fmt::format_to_n(end, room, format, std::forward<Args>(args)...).out;
    };
    append("nexar {} {}", name(record.level), record.text);
    if (record.suppressed != 0) append(" ({} more suppressed)", record.suppressed);
    *end++ = '\n';
    const char* begin = line.data();
    while (begin != end) {
        const ssize_t n = ::write(STDERR_FILENO, begin, static_cast<std::size_t>(end - begin));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return count(lost_failed);
        begin += n;
    }
}

/// The sink, and the mutex under which it runs. After a replacement, the old sink is guaranteed not
/// to run any more.
class Outlet {
public:
    void write(const LogRecord& record) noexcept {
        if (inside_sink) return count(lost_reentrant);
        LogSink replaced;  // destroyed after the mutex is unlocked: its destructor may log
        const std::lock_guard lock(mutex_);
        inside_sink = true;
        try {
            if (sink_) {
                sink_(record);
            } else {
                write_to_standard_error(record);
            }
        } catch (...) {
            count(lost_failed);
        }
        inside_sink = false;
        if (next_) {
            replaced = std::exchange(sink_, std::move(*next_));
            next_.reset();
        }
    }

    void replace(LogSink sink) {
        if (inside_sink) {  // this thread holds the mutex
            next_ = std::move(sink);
            return;
        }
        const std::lock_guard lock(mutex_);
        sink_.swap(sink);
    }

private:
    std::mutex mutex_;
    LogSink sink_;                 // guarded by mutex_, like next_
    std::optional<LogSink> next_;  // set from inside the sink; takes effect when it returns
};

Outlet& outlet() {
    // Never destroyed: destructors of static objects may log.
    static Outlet& instance = *new Outlet;
    return instance;
}

}  // namespace

std::string_view name(LogLevel level) noexcept {
    switch (level) {
        case LogLevel::debug:
            return "debug";
        case LogLevel::info:
            return "info";
        case LogLevel::warning:
            return "warning";
        case LogLevel::error:
            return "error";
        case LogLevel::off:
            return "off";
    }
    return "unknown";
}

void set_log_sink(LogSink sink) {
    outlet().replace(std::move(sink));
}

void set_log_level(LogLevel level) noexcept {
    level_is_pinned.store(true, std::memory_order_relaxed);
    detail::log_threshold.store(level, std::memory_order_relaxed);
}

LogLevel log_level() noexcept {
    return detail::log_threshold.load(std::memory_order_relaxed);
}

LogLosses log_losses() noexcept {
    return {.suppressed = lost_suppressed.load(std::memory_order_relaxed),
            .reentrant = lost_reentrant.load(std::memory_order_relaxed),
            .failed = lost_failed.load(std::memory_order_relaxed)};
}

void configure_log(const LogOptions& options) noexcept {
    if (!level_is_pinned.load(std::memory_order_relaxed)) {
        detail::log_threshold.store(options.level, std::memory_order_relaxed);
    }
    const std::int64_t lines = options.lines_per_second;
    interval_ns.store(lines == 0 ? 0 : kSecondNs / lines, std::memory_order_relaxed);
}

void set_log_clock(const Clock* clock) noexcept {
    replaced_clock.store(clock, std::memory_order_release);
}

namespace detail {

std::optional<std::uint64_t> LogSite::admit() noexcept {
    const std::int64_t interval = interval_ns.load(std::memory_order_relaxed);
    const std::int64_t now = log_now().time_since_epoch().count();
    std::int64_t full_at = full_at_ns_.load(std::memory_order_relaxed);
    for (;;) {
        // A bucket that filled up long ago is just full: idle time earns no extra tokens.
        std::int64_t from = std::max(full_at, now);
        // A bucket fills within a second, and other threads' clocks are only a little ahead. A time
        // further in the future comes from a clock that has since been replaced.
        if (from - now > 2 * kSecondNs) from = now;
        if (from - now > kSecondNs - interval) {
            suppressed_.fetch_add(1, std::memory_order_relaxed);
            count(lost_suppressed);
            return std::nullopt;
        }
        if (full_at_ns_.compare_exchange_weak(full_at, from + interval,
                                              std::memory_order_relaxed)) {
            return suppressed_.exchange(0, std::memory_order_relaxed);
        }
    }
}

void write_log(const LogSite& site, std::uint64_t suppressed, fmt::string_view format,
               fmt::format_args args) noexcept {
    const int saved_errno = errno;  // logging must not change the caller's errno
    try {
        // One byte more than fits, so that write_printable notices truncation.
        std::array<char, kTextLimit + 1> raw;  // NOLINT(*-member-init): filled below
        std::array<char, kTextLimit> text;     // NOLINT(*-member-init)
        const auto formatted = fmt::vformat_to_n(raw.data(), raw.size(), format, args);
        const std::size_t size = std::min(formatted.size, raw.size());
        const std::size_t n = write_printable({raw.data(), size}, text);
        outlet().write({.level = site.level(),
                        .text = {text.data(), n},
                        .suppressed = suppressed,
                        .file = site.file(),
                        .line = site.line()});
    } catch (...) {
        count(lost_failed);
    }
    errno = saved_errno;
}

}  // namespace detail

}  // namespace nexar

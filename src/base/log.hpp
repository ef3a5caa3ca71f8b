#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <nexar/log.hpp>
#include <optional>
#include <utility>

#include "base/time.hpp"

namespace nexar {

/// What settings say about the log.
struct LogOptions {
    LogLevel level = LogLevel::warning;
    std::uint32_t lines_per_second = 10;  // of each call site, which is also its burst; 0: no limit
};

/// Applies the settings to this process; the level only while set_log_level() was not called.
void configure_log(const LogOptions& options) noexcept;

/// Lets the rate limit run on `clock`, which must live until it is replaced; null restores the
/// machine's. For tests and the simulator.
void set_log_clock(const Clock* clock) noexcept;

namespace detail {

extern constinit std::atomic<LogLevel> log_threshold;

/// A place in the source that logs, and its share of the rate limit: a token bucket, kept as the
/// time at which it will be full again (GCRA, ITU-T I.371), so that one atomic word is all of it.
/// Constant-initialised; any thread may call.
class LogSite {
public:
    constexpr LogSite(LogLevel level, const char* file, int line) noexcept
        : level_(level), line_(line), file_(file) {}

    /// Whether a line may pass now. If so, the number of lines that were suppressed since the last
    /// one.
    std::optional<std::uint64_t> admit() noexcept;

    LogLevel level() const noexcept { return level_; }
    const char* file() const noexcept { return file_; }
    int line() const noexcept { return line_; }

private:
    LogLevel level_;
    int line_;
    const char* file_;
    std::atomic<std::int64_t> full_at_ns_{std::numeric_limits<std::int64_t>::min()};
    std::atomic<std::uint64_t> suppressed_{0};
};

void write_log(const LogSite& site, std::uint64_t suppressed, fmt::string_view format,
               fmt::format_args args) noexcept;

template <class... Args>
void write_log_line(const LogSite& site, std::uint64_t suppressed,
                    fmt::format_string<Args...> format, Args&&... args) noexcept {
    write_log(site, suppressed, format, fmt::make_format_args(args...));
}

}  // namespace detail

}  // namespace nexar

/// NEXAR_LOG_WARNING("peer {} is late by {} ms", rank, late): the format is checked at compile
/// time; the arguments are evaluated only when the line will be written. Writing never throws. Each
/// place in the source has a rate limit of its own.
#define NEXAR_LOG_DEBUG(...) NEXAR_LOG(debug, __VA_ARGS__)
#define NEXAR_LOG_INFO(...) NEXAR_LOG(info, __VA_ARGS__)
#define NEXAR_LOG_WARNING(...) NEXAR_LOG(warning, __VA_ARGS__)
#define NEXAR_LOG_ERROR(...) NEXAR_LOG(error, __VA_ARGS__)

#define NEXAR_LOG(severity, ...)                                                                 \
    do {                                                                                         \
        constexpr auto nexar_log_level = ::nexar::LogLevel::severity;                            \
        if (nexar_log_level >= ::nexar::detail::log_threshold.load(std::memory_order_relaxed)) { \
            static constinit ::nexar::detail::LogSite nexar_log_site(nexar_log_level,            \
                                                                     __FILE_NAME__, __LINE__);   \
            if (const auto nexar_log_suppressed = nexar_log_site.admit()) {                      \
                ::nexar::detail::write_log_line(nexar_log_site, *nexar_log_suppressed,           \
                                                __VA_ARGS__);                                    \
            }                                                                                    \
        }                                                                                        \
    } while (false)

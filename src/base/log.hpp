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

/// The settings of the log.
struct LogOptions {
    LogLevel level = LogLevel::warning;
    std::uint32_t lines_per_second = 10;  // per call site, also its burst; 0: no limit
};

/// Applies the settings to this process. A level set by set_log_level() stays.
void configure_log(const LogOptions& options) noexcept;

/// Makes the rate limit use `clock`, which must live until it is replaced; null restores the
/// machine's clock. For tests and the simulator.
void set_log_clock(const Clock* clock) noexcept;

namespace detail {

extern constinit std::atomic<LogLevel> log_threshold;

/// A log statement in the source, with a rate limit of its own: a token bucket, stored as the time
/// at which it will be full again (GCRA, ITU-T I.371), which needs only one atomic word.
/// Constant-initialised; any thread may call.
class LogSite {
public:
    constexpr LogSite(LogLevel level, const char* file, int line) noexcept
        : level_(level), line_(line), file_(file) {}

    /// Returns the number of lines suppressed since the last one if a line may be written now, else
    /// nullopt.
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
/// time; the arguments are evaluated only if the line will be written. Writing never throws. Each
/// log statement has a rate limit of its own.
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

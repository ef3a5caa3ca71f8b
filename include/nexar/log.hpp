#pragma once

#include <cstdint>
#include <functional>
#include <nexar/export.hpp>
#include <string_view>

namespace nexar {

/// Severity of a log line. As a threshold, it lets through lines of this level and above; `off`
/// lets none through.
enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

/// The name as used in the configuration; "unknown" for an invalid number.
NEXAR_EXPORT std::string_view name(LogLevel level) noexcept;

/// One line of the log. The views are valid only during the call of the sink.
struct LogRecord {
    LogLevel level = LogLevel::info;
    /// At most 1024 bytes of UTF-8 on one line. Control characters are escaped; a longer text is
    /// cut and ends in "...".
    std::string_view text{};
    /// Number of lines from the same call site that the rate limit dropped since the last logged
    /// one.
    std::uint64_t suppressed = 0;
    /// The place in nexar's source code that logged the line.
    std::string_view file{};
    int line = 0;
};

/// Receives the log lines instead of standard error.
///
/// Any thread that logs may call it, one at a time. It must return quickly and must not wait for
/// another thread that may log. Exceptions that it throws are dropped and counted, and so are lines
/// logged from inside it (a call to nexar may log).
using LogSink = std::function<void(const LogRecord&)>;

/// Sends the log lines of all nodes in this process to `sink`; an empty sink restores standard
/// error. Any thread may call at any time. When the call returns, the old sink is no longer running
/// and has been destroyed; if called from inside a sink, that happens after the sink returns.
NEXAR_EXPORT void set_log_sink(LogSink sink);

/// The threshold of this process, initially `warning`. A value set here takes precedence over the
/// setting log_level. Any thread may call.
NEXAR_EXPORT void set_log_level(LogLevel level) noexcept;
NEXAR_EXPORT LogLevel log_level() noexcept;

/// Lines lost since the process started, by reason.
struct LogLosses {
    std::uint64_t suppressed = 0;  // by the rate limit
    std::uint64_t reentrant = 0;   // logged from inside a sink
    std::uint64_t failed = 0;  // the sink threw, standard error was not writable, or memory ran out
};

NEXAR_EXPORT LogLosses log_losses() noexcept;

}  // namespace nexar

#pragma once

#include <cstdint>
#include <functional>
#include <nexar/export.hpp>
#include <string_view>

namespace nexar {

/// How much a line matters. As a threshold: lines of this level and above are written, `off` writes
/// none.
enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

/// The name as written in the source and in configuration; "unknown" for a number that is none.
NEXAR_EXPORT std::string_view name(LogLevel level) noexcept;

/// One line of the log. The views are valid during the call of the sink only.
struct LogRecord {
    LogLevel level = LogLevel::info;
    /// At most 1024 bytes of UTF-8 on one line: control characters are escaped, a longer text ends
    /// in "...".
    std::string_view text{};
    /// Lines of the same call site that the rate limit dropped since the last one that passed.
    std::uint64_t suppressed = 0;
    /// The place in nexar's source that wrote the line.
    std::string_view file{};
    int line = 0;
};

/// Takes the lines of the log instead of standard error.
///
/// Called by whichever thread has something to say, by one at a time. It must return soon and must
/// not wait for another thread that may log. An exception that leaves it is dropped and counted; so
/// is a line that is logged from inside of it (a call of nexar may log).
using LogSink = std::function<void(const LogRecord&)>;

/// Sends the lines of all nodes of this process to `sink`; an empty one restores standard error.
/// Any thread may call at any time. When the call returns the old sink runs no more and is
/// destroyed; only when called from inside a sink, that happens after that sink returned.
NEXAR_EXPORT void set_log_sink(LogSink sink);

/// The threshold of this process, `warning` at first. What is set here wins over the setting
/// log_level. Any thread may call.
NEXAR_EXPORT void set_log_level(LogLevel level) noexcept;
NEXAR_EXPORT LogLevel log_level() noexcept;

/// Lines that did not reach the log since the process started, by reason.
struct LogLosses {
    std::uint64_t suppressed = 0;  // by the rate limit
    std::uint64_t reentrant = 0;   // logged from inside a sink
    std::uint64_t failed = 0;      // the sink threw, standard error took no more, or no memory
};

NEXAR_EXPORT LogLosses log_losses() noexcept;

}  // namespace nexar

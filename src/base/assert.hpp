#pragma once

namespace nexar {

/// Prints the failed condition and its location, and aborts. For NEXAR_ASSERT only.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line,
                                   const char* message) noexcept;

}  // namespace nexar

/// A failed assertion is a bug in nexar; checked in every build. Operating failures are Results.
/// NEXAR_ASSERT(condition) or NEXAR_ASSERT(condition, "why it must hold").
#define NEXAR_ASSERT(condition, ...) \
    (static_cast<bool>(condition)    \
         ? static_cast<void>(0)      \
         : ::nexar::assertion_failed(#condition, __FILE_NAME__, __LINE__, "" __VA_ARGS__))

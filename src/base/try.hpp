#pragma once

#include <nexar/result.hpp>

/// Evaluates a Result<void>; on failure returns its Error from the enclosing function.
#define NEXAR_TRY(expression)                                        \
    do {                                                             \
        if (auto nexar_try_result = (expression); !nexar_try_result) \
            return nexar_try_result.error();                         \
    } while (false)

/// Declares `name` with the value of a Result, or returns its Error from the enclosing function:
/// NEXAR_TRY_VALUE(header, decode_header(bytes));
// NOLINTBEGIN(bugprone-macro-parentheses): `name` is declared, not evaluated.
#define NEXAR_TRY_VALUE(name, expression)                 \
    auto name##_or_error = (expression);                  \
    if (!name##_or_error) return name##_or_error.error(); \
    auto& name = *name##_or_error
// NOLINTEND(bugprone-macro-parentheses)

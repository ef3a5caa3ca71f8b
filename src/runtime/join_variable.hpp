#pragma once

#include <optional>
#include <string>

namespace nexar {

/// The value of NEXAR_JOIN; nothing when it is not set or empty.
///
/// A join string is a secret, and children inherit the environment. So the first call removes the
/// variable, and overwrites its value where /proc/PID/environ shows it; the process remembers the
/// value for the next call. A variable that was set again since then counts instead. Any thread may
/// call, but none may read or change the environment meanwhile other than through nexar.
std::optional<std::string> take_join_variable();

/// Whether take_join_variable() has a value that is no longer in the environment.
bool join_variable_was_taken();

}  // namespace nexar

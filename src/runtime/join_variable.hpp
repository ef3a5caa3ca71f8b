#pragma once

#include <optional>
#include <string>

namespace nexar {

/// The value of NEXAR_JOIN; nullopt if it is not set or empty.
///
/// A join string is a secret, and child processes inherit the environment. So the first call
/// removes the variable and overwrites its value in /proc/PID/environ; the process remembers it for
/// later calls. If the program has set the variable again, the new value counts. Any thread may
/// call, but no thread may read or change the environment at the same time except through nexar.
std::optional<std::string> take_join_variable();

/// True if take_join_variable() has removed a value from the environment.
bool join_variable_was_taken();

}  // namespace nexar

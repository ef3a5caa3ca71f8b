#pragma once

#include <sys/types.h>

#include <string>

namespace nexar::testing {

/// Private networks for child processes. A namespace, with its devices and addresses, disappears
/// with the last process in it, however a test ends.

/// Moves this process, which must have only one thread, into a new network without an active
/// device. Throws Error (unsupported) if this user is not permitted to.
void enter_new_network();

/// The same with the network of process `id`.
void enter_network_of(pid_t id);

/// Changes the host name for this process and its children only.
void take_host_name(const std::string& name);

/// Runs a shell command, usually `ip`. Throws Error (bad_config) that quotes the command if it
/// fails.
void run_command(const std::string& command);

bool has_ip_command();

}  // namespace nexar::testing

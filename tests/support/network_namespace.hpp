#pragma once

#include <sys/types.h>

#include <string>

namespace nexar::testing {

/// Networks of a child process's own. A namespace belongs to the processes in it and is gone with
/// the last of them, devices and addresses included, however a test ends.

/// Puts this process, which must have one thread, into a network of its own that has no device that
/// is up. Throws Error (unsupported) where this user may not.
void enter_new_network();

/// The same with the network that the process `id` is in.
void enter_network_of(pid_t id);

/// Another name for this host, seen by this process and its children only.
void take_host_name(const std::string& name);

/// Runs a shell command, as a rule of `ip`; throws Error (bad_config) that names it when it fails.
void run_command(const std::string& command);

bool has_ip_command();

}  // namespace nexar::testing

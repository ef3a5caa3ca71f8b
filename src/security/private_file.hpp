#pragma once

#include <cstddef>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <string>

#include "base/descriptor.hpp"
#include "base/secret.hpp"

namespace nexar::security {

// Files that only their owner can read. All errors are bad_config unless a function says otherwise;
// they name the path and what to do.

/// Creates the directory, with its parents, with mode 0700 if it does not exist. Fails if it is a
/// link, belongs to another user or is accessible to others.
Result<void> make_private_directory(const std::string& path);

/// Reads the whole file; nullopt if it does not exist. Fails if it is not a regular file, belongs
/// to another user, is accessible to others, or is larger than `max_bytes`.
Result<std::optional<Secret>> read_private_file(const std::string& path, std::size_t max_bytes);

/// Replaces the file atomically: after a crash it has either the old or the new content. The new
/// content is on disk when this returns.
Result<void> write_private_file(const std::string& path, std::span<const std::byte> content);

/// Removes the temporary files of calls of write_private_file(path) whose processes were killed. No
/// other process may write the file at the same time.
void remove_unfinished(const std::string& path);

/// Locks `path` as long as the descriptor is open. If another process holds the lock, returns
/// nullopt unless `wait` is true; then it waits up to ten seconds and fails with timed_out.
Result<std::optional<Descriptor>> lock_file(const std::string& path, bool wait);

}  // namespace nexar::security

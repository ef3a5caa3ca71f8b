#pragma once

#include <cstddef>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <string>

#include "base/descriptor.hpp"
#include "base/secret.hpp"

namespace nexar::security {

// Files that only their owner may read. Errors are bad_config and name the path and what to do.

/// Makes the directory, with its parents and mode 0700, where it is absent. One that is a link,
/// another user's or open to others is refused.
Result<void> make_private_directory(const std::string& path);

/// The whole file, nothing when it is absent. One that is no regular file, another user's, open to
/// others, or larger than `max_bytes` is refused.
Result<std::optional<Secret>> read_private_file(const std::string& path, std::size_t max_bytes);

/// Replaces the file as a whole: after a crash it has the old content or the new one, and when this
/// returns the new one is on the disk.
Result<void> write_private_file(const std::string& path, std::span<const std::byte> content);

/// Removes what calls of write_private_file(path) left behind whose processes were killed. No other
/// process may be writing the file meanwhile.
void remove_unfinished(const std::string& path);

/// Holds `path` locked while the descriptor is open. Nothing when somebody else holds it and `wait`
/// is false; waits for at most ten seconds when it is true.
Result<std::optional<Descriptor>> lock_file(const std::string& path, bool wait);

}  // namespace nexar::security

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace nexar::wire {

/// Text from a peer ends up in logs and terminals, so it must not be able to forge lines, move the
/// cursor or reorder what is shown. Allowed is UTF-8 (Unicode 15, table 3-7) without control
/// characters (C0, DEL, C1), line and paragraph separators (U+2028, U+2029) and bidirectional
/// embeddings, overrides and isolates (U+202A-U+202E, U+2066-U+2069).
///
/// Offset of the first character that is not allowed; nothing when all are.
std::optional<std::size_t> first_unprintable(std::string_view text) noexcept;

/// The nearest text that is allowed: each byte that is not becomes '?', and what exceeds
/// `max_bytes` is cut off between two characters.
std::string printable(std::string_view text, std::size_t max_bytes);

}  // namespace nexar::wire

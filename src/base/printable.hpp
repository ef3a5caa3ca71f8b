#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace nexar {

/// Writes `text` into `out` so that it can be shown on one line of a terminal or log: control
/// characters (C0, DEL, C1), line and paragraph separators and bidirectional overrides become
/// escapes (`\n`, `\x1b`), as do bytes that are not UTF-8; everything else stays. When `out` is too
/// small the text is cut between characters and ends in "...". Returns the bytes written. Does not
/// allocate. `out` must have room for at least 3 bytes.
std::size_t write_printable(std::string_view text, std::span<char> out) noexcept;

/// `text` made printable and cut to 512 bytes.
std::string printable(std::string_view text);

/// `text` made printable, in double quotes, cut so that at most 64 bytes stand between them. For
/// showing in a message what was given.
std::string in_quotes(std::string_view text);

}  // namespace nexar

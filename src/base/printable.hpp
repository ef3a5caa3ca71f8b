#pragma once

#include <cstddef>
#include <optional>
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

/// Offset of the first character of `text` that write_printable() would escape; nullopt if there is
/// none.
std::optional<std::size_t> first_unprintable(std::string_view text) noexcept;

/// `text` made printable and cut to `max_bytes`, which must be at least 3.
std::string printable(std::string_view text, std::size_t max_bytes = 512);

/// `text` made printable, cut to at most 64 bytes, and put in double quotes. For messages that
/// quote their input.
std::string in_quotes(std::string_view text);

}  // namespace nexar

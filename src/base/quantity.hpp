#pragma once

#include <cstdint>
#include <nexar/result.hpp>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace nexar {

// The text form of configuration values. Parsers consume the whole text: they accept no blanks and
// no sign except a leading minus, and never round. A value that cannot be represented exactly is an
// Error (invalid_argument) whose cause quotes the text. For integers, sizes and durations,
// format_x(v) is the one canonical spelling and parse_x(format_x(v)) == v.

/// true, on, yes, 1; false, off, no, 0. Lower case.
Result<bool> parse_boolean(std::string_view text);

/// Decimal digits, with a leading minus for negative numbers.
Result<std::int64_t> parse_integer(std::string_view text);

/// A finite decimal number, `0.25`, `1e-3`.
Result<double> parse_real(std::string_view text);

/// Bytes: a decimal number and one of B, kB (or KB), MB, GB, TB (powers of 1000), KiB, MiB, GiB,
/// TiB (powers of 1024); a number without a unit is in bytes. A fraction is allowed if the result
/// is a whole number of bytes: `1.5KiB`, not `0.3KiB`. The case of the unit matters.
Result<std::uint64_t> parse_size(std::string_view text);

/// A decimal number and one of ns, us, ms, s, m (minutes), h; the unit is required. A fraction is
/// allowed if the result is a whole number of nanoseconds. Never negative.
Result<Duration> parse_duration(std::string_view text);

std::string_view format_boolean(bool value) noexcept;

/// Uses the largest power of 1024 that divides the size: 8388608 is `8MiB`, 1000 is `1000B`.
std::string format_size(std::uint64_t bytes);

/// Uses the largest unit that divides the duration: 1500 ms is `1500ms`, 60 s is `1m`, zero is
/// `0s`.
std::string format_duration(Duration duration);

}  // namespace nexar

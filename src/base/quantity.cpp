#include "base/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"

namespace nexar {

namespace {

struct Unit {
    std::string_view name;
    std::uint64_t factor;
};

// Each list starts with the canonical units, largest first; units that are only parsed follow.
constexpr std::array<Unit, 10> kSizeUnits = {{
    {"TiB", 1ULL << 40U},
    {"GiB", 1ULL << 30U},
    {"MiB", 1ULL << 20U},
    {"KiB", 1ULL << 10U},
    {"B", 1},
    {"TB", 1'000'000'000'000},
    {"GB", 1'000'000'000},
    {"MB", 1'000'000},
    {"kB", 1'000},
    {"KB", 1'000},
}};
constexpr std::size_t kCanonicalSizeUnits = 5;
constexpr std::string_view kSizeUnitNames = "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";

constexpr std::array<Unit, 6> kDurationUnits = {{
    {"h", 3'600'000'000'000},
    {"m", 60'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
}};
constexpr std::string_view kDurationUnitNames = "ns, us, ms, s, m, h";

// Any number with this many digits, and 10 to this power, fit in 64 bits.
constexpr std::size_t kFractionDigits = 18;

Error problem(std::string_view text, std::string_view clause) {
    return {Errc::invalid_argument, fmt::format("{} {}", in_quotes(text), clause)};
}

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

std::size_t count_digits(std::string_view text) noexcept {
    return static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
}

/// "1.50KiB" split into its parts; `fraction` has no trailing zeros.
struct Amount {
    std::string_view whole;
    std::string_view fraction;
    std::string_view unit;
};

Result<Amount> take_apart(std::string_view text) {
    if (text.empty()) return problem(text, "is empty");
    if (text.front() == '-') return problem(text, "is negative");
    Amount amount;
    amount.whole = text.substr(0, count_digits(text));
    if (amount.whole.empty()) return problem(text, "does not start with a number");
    amount.unit = text.substr(amount.whole.size());
    if (!amount.unit.starts_with('.')) return amount;
    amount.fraction = amount.unit.substr(1, count_digits(amount.unit.substr(1)));
    amount.unit.remove_prefix(1 + amount.fraction.size());
    if (amount.fraction.empty()) return problem(text, "has no digit after the point");
    amount.fraction = amount.fraction.substr(0, amount.fraction.find_last_not_of('0') + 1);
    return amount;
}

std::optional<std::uint64_t> digits_to_number(std::string_view digits) noexcept {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc()) return std::nullopt;
    return number;
}

/// 0.`fraction` times `factor`, or nullopt if that is not a whole number. The part of 10^digits
/// that the factor does not cancel must divide the fraction, so no product exceeds the factor.
std::optional<std::uint64_t> scaled(std::string_view fraction, std::uint64_t factor) noexcept {
    if (fraction.empty()) return 0;
    if (fraction.size() > kFractionDigits) return std::nullopt;
    const auto numerator = digits_to_number(fraction);
    if (!numerator) return std::nullopt;
    std::uint64_t denominator = 1;
    for (std::size_t i = 0; i < fraction.size(); ++i) denominator *= 10;
    const std::uint64_t common = std::gcd(denominator, factor);
    denominator /= common;
    if (*numerator % denominator != 0) return std::nullopt;
    return *numerator / denominator * (factor / common);
}

/// The amount in the base unit, whose name is `base`; fails above `largest`.
Result<std::uint64_t> total(std::string_view text, const Amount& amount, const Unit& unit,
                            std::string_view base, std::uint64_t largest) {
    const auto too_large = [&] {
        return problem(text, fmt::format("is too large: the number of {} overflows 64 bits", base));
    };
    const auto whole = digits_to_number(amount.whole);
    if (!whole || *whole > largest / unit.factor) return too_large();
    const auto part = scaled(amount.fraction, unit.factor);
    if (!part) return problem(text, fmt::format("is not a whole number of {}", base));
    const std::uint64_t sum = *whole * unit.factor;
    if (*part > largest - sum) return too_large();
    return sum + *part;
}

const Unit* find_unit(std::span<const Unit> units, std::string_view name) noexcept {
    const auto found = std::ranges::find(units, name, &Unit::name);
    return found == units.end() ? nullptr : &*found;
}

Error unknown_unit(std::string_view text, std::string_view unit, std::string_view names) {
    return problem(text,
                   fmt::format("has the unknown unit {}; units are {}", in_quotes(unit), names));
}

const Unit& largest_divisor(std::span<const Unit> units, std::uint64_t amount) noexcept {
    const auto found =
        std::ranges::find_if(units, [amount](const Unit& u) { return amount % u.factor == 0; });
    NEXAR_ASSERT(found != units.end(), "the smallest unit has the factor 1");
    return *found;
}

}  // namespace

Result<bool> parse_boolean(std::string_view text) {
    for (const std::string_view yes : {"true", "on", "yes", "1"}) {
        if (text == yes) return true;
    }
    for (const std::string_view no : {"false", "off", "no", "0"}) {
        if (text == no) return false;
    }
    return problem(text, "is neither true nor false");
}

Result<std::int64_t> parse_integer(std::string_view text) {
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc::invalid_argument || stop != text.data() + text.size()) {
        return problem(text, text.empty() ? "is empty" : "is not a whole number");
    }
    if (error != std::errc()) return problem(text, "does not fit in 64 bits");
    return number;
}

Result<double> parse_real(std::string_view text) {
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc::invalid_argument || stop != text.data() + text.size()) {
        return problem(text, text.empty() ? "is empty" : "is not a number");
    }
    if (error != std::errc()) return problem(text, "is out of the range of a double");
    if (!std::isfinite(number)) return problem(text, "is not a finite number");
    return number;
}

Result<std::uint64_t> parse_size(std::string_view text) {
    NEXAR_TRY_VALUE(amount, take_apart(text));
    const std::string_view name = amount.unit.empty() ? "B" : amount.unit;
    const Unit* const unit = find_unit(kSizeUnits, name);
    if (unit == nullptr) return unknown_unit(text, name, kSizeUnitNames);
    return total(text, amount, *unit, "bytes", std::numeric_limits<std::uint64_t>::max());
}

Result<Duration> parse_duration(std::string_view text) {
    NEXAR_TRY_VALUE(amount, take_apart(text));
    if (amount.unit.empty()) {
        return problem(text, fmt::format("has no unit; add one of {}", kDurationUnitNames));
    }
    const Unit* const unit = find_unit(kDurationUnits, amount.unit);
    if (unit == nullptr) return unknown_unit(text, amount.unit, kDurationUnitNames);
    constexpr auto kLargest = static_cast<std::uint64_t>(Duration::max().count());
    NEXAR_TRY_VALUE(count, total(text, amount, *unit, "nanoseconds", kLargest));
    return Duration(static_cast<Duration::rep>(count));
}

std::string_view format_boolean(bool value) noexcept {
    return value ? "true" : "false";
}

std::string format_size(std::uint64_t bytes) {
    if (bytes == 0) return "0B";
    const Unit& unit = largest_divisor(std::span(kSizeUnits).first<kCanonicalSizeUnits>(), bytes);
    return fmt::format("{}{}", bytes / unit.factor, unit.name);
}

std::string format_duration(Duration duration) {
    NEXAR_ASSERT(duration >= Duration::zero(), "durations of settings are never negative");
    if (duration == Duration::zero()) return "0s";
    const auto count = static_cast<std::uint64_t>(duration.count());
    const Unit& unit = largest_divisor(kDurationUnits, count);
    return fmt::format("{}{}", count / unit.factor, unit.name);
}

}  // namespace nexar

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nexar/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/time.hpp"

namespace nexar {

// What a setting may hold. Each kind has a default (`fallback`), the allowed values and, unless the
// text of a value includes it, the unit.

struct BooleanSpec {
    bool fallback = false;
};

struct IntegerSpec {
    std::int64_t fallback = 0;
    std::int64_t min = std::numeric_limits<std::int64_t>::min();
    std::int64_t max = std::numeric_limits<std::int64_t>::max();
    std::string_view unit{};
};

struct RealSpec {
    double fallback = 0;
    double min = std::numeric_limits<double>::lowest();
    double max = std::numeric_limits<double>::max();
    std::string_view unit{};
};

/// Bytes.
struct SizeSpec {
    std::uint64_t fallback = 0;
    std::uint64_t min = 0;
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
};

struct DurationSpec {
    Duration fallback = Duration::zero();
    Duration min = Duration::zero();
    Duration max = Duration::max();
    bool can_be_off = false;  // "off" means 0
};

/// One of a list of names; case matters.
struct ChoiceSpec {
    std::string_view fallback{};
    std::span<const std::string_view> choices{};
};

/// Any text without control characters; may be empty.
struct TextSpec {
    std::string_view fallback{};
    std::size_t max_bytes = 255;
};

using SettingSpec =
    std::variant<BooleanSpec, IntegerSpec, RealSpec, SizeSpec, DurationSpec, ChoiceSpec, TextSpec>;

enum class SettingScope : std::uint8_t {
    local,    // each process decides for itself
    cluster,  // equal on all members
};

std::string_view name(SettingScope scope) noexcept;

/// One row of a settings table. `name` is spelled as in a file: `log_level`; the environment
/// variable is NEXAR_LOG_LEVEL and the flag --nexar-log-level. `help` is one sentence without a
/// full stop.
struct Setting {
    std::string_view name{};
    SettingSpec spec{};
    SettingScope scope = SettingScope::local;
    std::string_view help{};
};

/// The value of a setting: boolean, integer, real, size or duration; choices and texts are strings.
using SettingValue = std::variant<bool, std::int64_t, double, std::uint64_t, Duration, std::string>;

/// A value in a file that no setting accepts, such as a date or a list.
struct ForeignValue {
    std::string_view type;
};

/// A value as its source provides it: text from the environment, the command line, code and the
/// cluster; a typed value from a file.
struct TextValue {
    std::string_view text;
};
struct FileValue {
    std::variant<std::string, bool, std::int64_t, double, ForeignValue> value;
};

/// Reads a value for `setting`. On failure, the cause of the Error (invalid_argument) quotes the
/// value, says what is wrong with it, and what is allowed.
Result<SettingValue> read_value(const Setting& setting, const TextValue& given);
Result<SettingValue> read_value(const Setting& setting, const FileValue& given);

SettingValue default_value(const Setting& setting);

/// "boolean", "integer", ...
std::string_view type_name(const Setting& setting) noexcept;

/// Describes the allowed values: "a whole number from 0 to 100 lines/s".
std::string allowed(const Setting& setting);

/// The canonical spelling, which read_value understands. Equal values have equal spellings.
std::string to_text(const SettingValue& value);

std::string environment_name(std::string_view setting_name);
std::string flag_name(std::string_view setting_name);

namespace detail {

template <class Spec>
constexpr bool in_order(const Spec& spec) noexcept {
    return spec.min <= spec.fallback && spec.fallback <= spec.max;
}

constexpr bool valid(const BooleanSpec&) noexcept {
    return true;
}
constexpr bool valid(const IntegerSpec& spec) noexcept {
    return in_order(spec);
}
constexpr bool valid(const RealSpec& spec) noexcept {
    return in_order(spec);
}
constexpr bool valid(const SizeSpec& spec) noexcept {
    return in_order(spec);
}
constexpr bool valid(const DurationSpec& spec) noexcept {
    return spec.min >= Duration::zero() && in_order(spec);
}
constexpr bool valid(const ChoiceSpec& spec) noexcept {
    for (const std::string_view choice : spec.choices) {
        if (choice == spec.fallback) return true;
    }
    return false;
}
constexpr bool valid(const TextSpec& spec) noexcept {
    return spec.fallback.size() <= spec.max_bytes;
}

constexpr bool valid_name(std::string_view name) noexcept {
    if (name.empty() || name.front() < 'a' || name.front() > 'z' || name.back() == '_')
        return false;
    for (const char c : name) {
        const bool letter = c >= 'a' && c <= 'z';
        const bool digit = c >= '0' && c <= '9';
        if (!letter && !digit && c != '_') return false;
    }
    return true;
}

}  // namespace detail

/// True if names are unique and in snake_case, every setting has a help text, and every default is
/// allowed. For a static_assert next to the table.
constexpr bool valid_table(std::span<const Setting> table) noexcept {
    for (std::size_t i = 0; i < table.size(); ++i) {
        const Setting& setting = table[i];
        if (!detail::valid_name(setting.name) || setting.help.empty()) return false;
        if (!std::visit([](const auto& spec) { return detail::valid(spec); }, setting.spec)) {
            return false;
        }
        for (std::size_t j = 0; j < i; ++j) {
            if (table[j].name == setting.name) return false;
        }
    }
    return true;
}

}  // namespace nexar

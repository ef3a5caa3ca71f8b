#include "base/setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

#include "base/nearest.hpp"
#include "base/printable.hpp"
#include "base/quantity.hpp"
#include "base/try.hpp"

namespace nexar {

namespace {

std::string spell(std::int64_t value) {
    return fmt::format("{}", value);
}
std::string spell(double value) {
    // One spelling per value: -0 equals 0.
    return fmt::format("{}", value == 0 ? 0.0 : value);
}
std::string spell(std::uint64_t value) {
    return format_size(value);
}
std::string spell(Duration value) {
    return format_duration(value);
}

/// " from 1 to 9", without a bound that excludes no value.
template <class T>
std::string bounds(T min, T max, T lowest, T highest) {
    if (min == lowest && max == highest) return "";
    if (max == highest) return fmt::format(" from {}", spell(min));
    if (min == lowest) return fmt::format(" up to {}", spell(max));
    return fmt::format(" from {} to {}", spell(min), spell(max));
}

std::string with_unit(std::string text, std::string_view unit) {
    return unit.empty() ? text : fmt::format("{} {}", text, unit);
}

std::string allowed_by(const BooleanSpec&) {
    return "true or false";
}
std::string allowed_by(const IntegerSpec& spec) {
    using Limits = std::numeric_limits<std::int64_t>;
    return with_unit("a whole number" + bounds(spec.min, spec.max, Limits::min(), Limits::max()),
                     spec.unit);
}
std::string allowed_by(const RealSpec& spec) {
    using Limits = std::numeric_limits<double>;
    return with_unit("a number" + bounds(spec.min, spec.max, Limits::lowest(), Limits::max()),
                     spec.unit);
}
std::string allowed_by(const SizeSpec& spec) {
    using Limits = std::numeric_limits<std::uint64_t>;
    return "a size (written like 64KiB)" + bounds(spec.min, spec.max, Limits::min(), Limits::max());
}
std::string allowed_by(const DurationSpec& spec) {
    return (spec.can_be_off ? "off, or a duration (written like 250ms)"
                            : "a duration (written like 250ms)") +
           bounds(spec.min, spec.max, Duration::zero(), Duration::max());
}
std::string allowed_by(const ChoiceSpec& spec) {
    return fmt::format("{}", fmt::join(spec.choices, ", "));
}
std::string allowed_by(const TextSpec& spec) {
    return fmt::format("at most {} bytes of text without control characters", spec.max_bytes);
}

Error setting_problem(std::string_view given, std::string_view clause) {
    return {Errc::invalid_argument, fmt::format("{} {}", given, clause)};
}

template <class Spec, class T>
Result<SettingValue> in_range(const Spec& spec, T value, const std::string& given) {
    if (value < spec.min || value > spec.max) return setting_problem(given, "is out of range");
    return SettingValue(value);
}

Result<SettingValue> read(const BooleanSpec&, std::string_view text) {
    NEXAR_TRY_VALUE(value, parse_boolean(text));
    return SettingValue(value);
}
Result<SettingValue> read(const IntegerSpec& spec, std::string_view text) {
    NEXAR_TRY_VALUE(value, parse_integer(text));
    return in_range(spec, value, in_quotes(text));
}
Result<SettingValue> read(const RealSpec& spec, std::string_view text) {
    NEXAR_TRY_VALUE(value, parse_real(text));
    return in_range(spec, value, in_quotes(text));
}
Result<SettingValue> read(const SizeSpec& spec, std::string_view text) {
    NEXAR_TRY_VALUE(value, parse_size(text));
    return in_range(spec, value, in_quotes(text));
}
Result<SettingValue> read(const DurationSpec& spec, std::string_view text) {
    if (spec.can_be_off && text == "off") return SettingValue(Duration::zero());
    NEXAR_TRY_VALUE(value, parse_duration(text));
    return in_range(spec, value, in_quotes(text));
}
Result<SettingValue> read(const ChoiceSpec& spec, std::string_view text) {
    if (std::ranges::find(spec.choices, text) != spec.choices.end()) {
        return SettingValue(std::string(text));
    }
    if (text.empty()) return setting_problem(in_quotes(text), "is empty");
    const auto meant = nearest(text, spec.choices);
    return setting_problem(in_quotes(text),
                           meant ? fmt::format("is unknown, did you mean \"{}\"?", *meant)
                                 : std::string("is unknown"));
}
Result<SettingValue> read(const TextSpec& spec, std::string_view text) {
    const auto is_control = [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    };
    if (std::ranges::any_of(text, is_control)) {
        return setting_problem(in_quotes(text), "contains a control character");
    }
    if (text.size() > spec.max_bytes) {
        return setting_problem(in_quotes(text), fmt::format("is {} bytes long", text.size()));
    }
    return SettingValue(std::string(text));
}

std::string_view type_of(const BooleanSpec&) noexcept {
    return "boolean";
}
std::string_view type_of(const IntegerSpec&) noexcept {
    return "integer";
}
std::string_view type_of(const RealSpec&) noexcept {
    return "real";
}
std::string_view type_of(const SizeSpec&) noexcept {
    return "size";
}
std::string_view type_of(const DurationSpec&) noexcept {
    return "duration";
}
std::string_view type_of(const ChoiceSpec&) noexcept {
    return "choice";
}
std::string_view type_of(const TextSpec&) noexcept {
    return "text";
}

/// Converts a typed value from a file. Combinations not listed below have the wrong type.
struct FileReader {
    const Setting& setting;

    template <class Spec>
    Result<SettingValue> operator()(const Spec& spec, const std::string& text) const {
        constexpr bool kWrittenAsText = !std::is_same_v<Spec, BooleanSpec> &&
                                        !std::is_same_v<Spec, IntegerSpec> &&
                                        !std::is_same_v<Spec, RealSpec>;
        if constexpr (kWrittenAsText) return read(spec, text);
        return wrong_type(fmt::format("the string {}", in_quotes(text)));
    }
    Result<SettingValue> operator()(const BooleanSpec&, bool value) const {
        return SettingValue(value);
    }
    Result<SettingValue> operator()(const IntegerSpec& spec, std::int64_t value) const {
        return in_range(spec, value, spell(value));
    }
    Result<SettingValue> operator()(const RealSpec& spec, std::int64_t value) const {
        return in_range(spec, static_cast<double>(value), spell(value));
    }
    Result<SettingValue> operator()(const RealSpec& spec, double value) const {
        if (!std::isfinite(value)) return setting_problem(spell(value), "is not a finite number");
        return in_range(spec, value, spell(value));
    }
    Result<SettingValue> operator()(const SizeSpec& spec, std::int64_t value) const {
        if (value < 0) return setting_problem(spell(value), "is negative");
        return in_range(spec, static_cast<std::uint64_t>(value), spell(value));
    }
    Result<SettingValue> operator()(const DurationSpec&, std::int64_t value) const {
        return no_unit(spell(value));
    }
    Result<SettingValue> operator()(const DurationSpec&, double value) const {
        return no_unit(spell(value));
    }
    template <class Spec>
    Result<SettingValue> operator()(const Spec&, bool value) const {
        return wrong_type(fmt::format("the boolean {}", value));
    }
    template <class Spec>
    Result<SettingValue> operator()(const Spec&, std::int64_t value) const {
        return wrong_type(fmt::format("the integer {}", value));
    }
    template <class Spec>
    Result<SettingValue> operator()(const Spec&, double value) const {
        return wrong_type(fmt::format("the float {}", value));
    }
    template <class Spec>
    Result<SettingValue> operator()(const Spec&, const ForeignValue& value) const {
        return wrong_type(value.type);
    }

    Error wrong_type(std::string_view given) const {
        return setting_problem(given, fmt::format("is not a valid {}", type_name(setting)));
    }
    static Error no_unit(std::string_view given) {
        return setting_problem(given,
                               fmt::format("has no unit; write a string such as \"{}s\"", given));
    }
};

Result<SettingValue> or_what_is_allowed(Result<SettingValue> result, const Setting& setting) {
    if (result) return result;
    return Error(Errc::invalid_argument,
                 fmt::format("{}; allowed: {}", result.error().cause(), allowed(setting)));
}

}  // namespace

std::string_view name(SettingScope scope) noexcept {
    return scope == SettingScope::local ? "local" : "cluster";
}

Result<SettingValue> read_value(const Setting& setting, const TextValue& given) {
    auto result =
        std::visit([&](const auto& spec) { return read(spec, given.text); }, setting.spec);
    return or_what_is_allowed(std::move(result), setting);
}

Result<SettingValue> read_value(const Setting& setting, const FileValue& given) {
    return or_what_is_allowed(std::visit(FileReader{setting}, setting.spec, given.value), setting);
}

SettingValue default_value(const Setting& setting) {
    return std::visit(
        [](const auto& spec) {
            using T = std::remove_cvref_t<decltype(spec.fallback)>;
            if constexpr (std::is_same_v<T, std::string_view>) {
                return SettingValue(std::string(spec.fallback));
            } else {
                return SettingValue(spec.fallback);
            }
        },
        setting.spec);
}

std::string_view type_name(const Setting& setting) noexcept {
    return std::visit([](const auto& spec) { return type_of(spec); }, setting.spec);
}

std::string allowed(const Setting& setting) {
    return std::visit([](const auto& spec) { return allowed_by(spec); }, setting.spec);
}

std::string to_text(const SettingValue& value) {
    return std::visit(
        [](const auto& held) -> std::string {
            using T = std::remove_cvref_t<decltype(held)>;
            if constexpr (std::is_same_v<T, std::string>) {
                return held;
            } else if constexpr (std::is_same_v<T, bool>) {
                return std::string(format_boolean(held));
            } else {
                return spell(held);
            }
        },
        value);
}

std::string environment_name(std::string_view setting_name) {
    std::string text = "NEXAR_";
    for (const char c : setting_name) {
        text += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    return text;
}

std::string flag_name(std::string_view setting_name) {
    std::string text = fmt::format("--nexar-{}", setting_name);
    std::ranges::replace(text, '_', '-');
    return text;
}

}  // namespace nexar

#include "base/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/assert.hpp"
#include "base/nearest.hpp"
#include "base/printable.hpp"

namespace nexar {

namespace {

constexpr std::size_t kShownProblems = 16;
constexpr std::size_t kShownWarnings = 8;

template <class Spec, class T>
const T& held(const Config::Entry& entry) noexcept {
    NEXAR_ASSERT(std::holds_alternative<Spec>(entry.setting->spec), "the setting has another type");
    return std::get<T>(entry.value);
}

}  // namespace

const std::string* find_value(std::span<const NamedValue> values, std::string_view name) noexcept {
    const auto found = std::ranges::find(values, name, &NamedValue::name);
    return found == values.end() ? nullptr : &found->value;
}

std::string to_text(const Origin& origin) {
    switch (origin.kind) {
        case OriginKind::fallback:
            return "default";
        case OriginKind::cluster:
            return "cluster";
        case OriginKind::file:
            return "file " + origin.place;
        case OriginKind::environment:
            return "environment " + origin.place;
        case OriginKind::command_line:
            return "command line " + origin.place;
        case OriginKind::code:
            break;
    }
    return "code";
}

Error config_error(std::span<const std::string> problems) {
    NEXAR_ASSERT(!problems.empty());
    if (problems.size() == 1) return {Errc::bad_config, problems.front()};
    std::string cause = fmt::format("{} problems:", problems.size());
    for (const std::string& problem : problems.first(std::min(problems.size(), kShownProblems))) {
        cause += "\n  " + problem;
    }
    if (problems.size() > kShownProblems) {
        cause += fmt::format("\n  and {} more", problems.size() - kShownProblems);
    }
    return {Errc::bad_config, std::move(cause)};
}

/// Applies the sources from the weakest to the strongest and collects all problems.
class ConfigResolver {
public:
    explicit ConfigResolver(std::span<const Setting> table) : table_(table) {
        for (const Setting& setting : table) {
            names_.push_back(setting.name);
            flags_.push_back(flag_name(setting.name));
            variables_.push_back(environment_name(setting.name));
            config_.entries_.push_back({.setting = &setting, .value = default_value(setting)});
            for (const std::string_view other : kOtherVariables) {
                NEXAR_ASSERT(variables_.back() != other, "a setting has a reserved name");
            }
        }
    }

    void apply_file(const ConfigFile& file) {
        const auto entries = parse_config_file(file);
        if (!entries) {
            problems_.push_back(entries.error().cause());
            return;
        }
        for (const ConfigFileEntry& entry : *entries) {
            Origin origin{OriginKind::file, fmt::format("{}:{}", printable(file.path), entry.line)};
            if (const auto i = index_of(names_, entry.key)) {
                apply(*i, entry.value, std::move(origin));
                continue;
            }
            const auto* foreign = std::get_if<ForeignValue>(&entry.value.value);
            const bool is_table = foreign != nullptr && foreign->type == "a table";
            problems_.push_back(
                fmt::format("{}: {} is not a setting{}{}", to_text(origin), in_quotes(entry.key),
                            is_table ? " (it is a table; settings must be outside of tables)" : "",
                            suggestion(entry.key, names_)));
        }
    }

    void apply_variable(const NamedValue& variable) {
        if (!variable.name.starts_with("NEXAR_")) return;
        if (const auto i = index_of(variables_, variable.name)) {
            apply(*i, TextValue{variable.value}, {OriginKind::environment, variable.name});
            return;
        }
        if (std::ranges::find(kOtherVariables, variable.name) != kOtherVariables.end()) return;
        if (++unknown_variables_ > kShownWarnings) return;
        std::vector<std::string_view> known(variables_.begin(), variables_.end());
        known.insert(known.end(), kOtherVariables.begin(), kOtherVariables.end());
        config_.warnings_.push_back(
            fmt::format("environment variable {} is not a setting and has no effect{}",
                        printable(variable.name), suggestion(variable.name, known)));
    }

    void apply_flag(const ConfigFlag& flag) {
        const auto i = index_of(flags_, flag.name);
        if (!i) {
            const std::vector<std::string_view> known(flags_.begin(), flags_.end());
            problems_.push_back(fmt::format("command line: {} is not a nexar flag{}",
                                            in_quotes(flag.name), suggestion(flag.name, known)));
            return;
        }
        Origin origin{OriginKind::command_line, flag.name};
        if (!flag.value) {
            problems_.push_back(fmt::format("{} ({}): the value is missing; allowed: {}",
                                            names_[*i], to_text(origin), allowed(table_[*i])));
            return;
        }
        apply(*i, TextValue{*flag.value}, std::move(origin));
    }

    void apply_code(const NamedValue& assignment) {
        if (const auto i = index_of(names_, assignment.name)) {
            apply(*i, TextValue{assignment.value}, {OriginKind::code, ""});
            return;
        }
        problems_.push_back(fmt::format("code: {} is not a setting{}", in_quotes(assignment.name),
                                        suggestion(assignment.name, names_)));
    }

    Result<Config> finish() && {
        if (!problems_.empty()) return config_error(problems_);
        if (unknown_variables_ > kShownWarnings) {
            config_.warnings_.push_back(
                fmt::format("{} more environment variables start with NEXAR_ but are not settings",
                            unknown_variables_ - kShownWarnings));
        }
        return std::move(config_);
    }

private:
    template <class Names>
    static std::optional<std::size_t> index_of(const Names& names, std::string_view name) {
        const auto found = std::ranges::find(names, name);
        if (found == names.end()) return std::nullopt;
        return static_cast<std::size_t>(found - names.begin());
    }

    static std::string suggestion(std::string_view name, std::span<const std::string_view> known) {
        const auto meant = nearest(name, known);
        return meant ? fmt::format("; did you mean {}?", *meant)
                     : std::string("; `nexar config` lists all settings");
    }

    template <class Given>
    void apply(std::size_t i, const Given& given, Origin origin) {
        auto value = read_value(table_[i], given);
        if (!value) {
            problems_.push_back(
                fmt::format("{} ({}): {}", names_[i], to_text(origin), value.error().cause()));
            return;
        }
        Config::Entry& entry = config_.entries_[i];
        entry.value = *std::move(value);
        entry.origin = std::move(origin);
    }

    std::span<const Setting> table_;
    std::vector<std::string_view> names_;
    std::vector<std::string> flags_;
    std::vector<std::string> variables_;
    Config config_;
    std::vector<std::string> problems_;
    std::size_t unknown_variables_ = 0;
};

Result<Config> Config::resolve(std::span<const Setting> table, const ConfigSources& sources) {
    NEXAR_ASSERT(valid_table(table));
    ConfigResolver resolver(table);
    for (const ConfigFile& file : sources.files | std::views::reverse) resolver.apply_file(file);
    for (const NamedValue& variable : sources.environment | std::views::reverse) {
        resolver.apply_variable(variable);
    }
    for (const ConfigFlag& flag : sources.flags) resolver.apply_flag(flag);
    for (const NamedValue& assignment : sources.code) resolver.apply_code(assignment);
    return std::move(resolver).finish();
}

const Config::Entry& Config::entry(std::string_view name) const noexcept {
    const auto found = std::ranges::find_if(
        entries_, [name](const Entry& entry) { return entry.setting->name == name; });
    NEXAR_ASSERT(found != entries_.end(), "the setting is not in the table");
    return *found;
}

bool Config::boolean(std::string_view name) const noexcept {
    return held<BooleanSpec, bool>(entry(name));
}
std::int64_t Config::integer(std::string_view name) const noexcept {
    return held<IntegerSpec, std::int64_t>(entry(name));
}
double Config::real(std::string_view name) const noexcept {
    return held<RealSpec, double>(entry(name));
}
std::uint64_t Config::size(std::string_view name) const noexcept {
    return held<SizeSpec, std::uint64_t>(entry(name));
}
Duration Config::duration(std::string_view name) const noexcept {
    return held<DurationSpec, Duration>(entry(name));
}
std::string_view Config::choice(std::string_view name) const noexcept {
    return held<ChoiceSpec, std::string>(entry(name));
}
std::string_view Config::text(std::string_view name) const noexcept {
    return held<TextSpec, std::string>(entry(name));
}

Config Config::with(std::span<const Entry> replacements) const {
    Config changed = *this;
    for (const Entry& replacement : replacements) {
        const auto found =
            std::ranges::find(changed.entries_, replacement.setting, &Entry::setting);
        NEXAR_ASSERT(found != changed.entries_.end(), "the setting is not in the table");
        *found = replacement;
    }
    return changed;
}

}  // namespace nexar

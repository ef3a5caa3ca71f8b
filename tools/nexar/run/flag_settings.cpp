#include "run/flag_settings.hpp"

#include <algorithm>
#include <string_view>

#include "base/setting.hpp"

namespace nexar::run {

NamedSettings flag_settings(std::span<const ConfigFlag> flags) {
    NamedSettings settings;
    settings.reserve(flags.size());
    for (const ConfigFlag& flag : flags) {
        std::string name = flag.name.substr(std::string_view("--nexar-").size());
        std::ranges::replace(name, '-', '_');
        settings.emplace_back(std::move(name), flag.value.value_or(""));
    }
    return settings;
}

std::vector<std::string> as_variables(const NamedSettings& settings) {
    std::vector<std::string> variables;
    variables.reserve(settings.size());
    for (const auto& [name, value] : settings) {
        variables.push_back(environment_name(name) + "=" + value);
    }
    return variables;
}

}  // namespace nexar::run

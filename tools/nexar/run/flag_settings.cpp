#include "run/flag_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <thread>

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

void add_sharing(NamedSettings& settings, const Config& config, std::uint32_t ranks) {
    constexpr const char* kName = "fabric_ranks_per_core";
    const unsigned cores = std::thread::hardware_concurrency();  // available to this process
    if (cores == 0 || ranks <= cores) return;
    if (config.entry(kName).origin.kind != OriginKind::fallback) return;
    settings.emplace_back(kName, fmt::format("{:.6g}", static_cast<double>(ranks) / cores));
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

// nexar config: shows all settings, their values here, and the origin of each value.

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.hpp"
#include "base/settings.hpp"
#include "command.hpp"
#include "help.hpp"
#include "runtime/config_sources.hpp"
#include "text_table.hpp"

namespace nexar {

namespace {

std::string as_table(const LoadedConfig& loaded) {
    std::vector<std::vector<std::string>> rows = {
        {"setting", "value", "origin", "scope", "meaning"}};
    for (const Config::Entry& entry : loaded.config.entries()) {
        rows.push_back({std::string(entry.setting->name), to_text(entry.value),
                        to_text(entry.origin), std::string(name(entry.setting->scope)),
                        std::string(entry.setting->help)});
    }
    std::string text = aligned(rows) + "\nfiles, in order of precedence:\n";
    for (const SeenConfigFile& file : loaded.files) {
        text += fmt::format("  {} ({})\n", printable(file.path), file.found ? "read" : "absent");
    }
    return text;
}

std::string as_json(const LoadedConfig& loaded) {
    auto settings = nlohmann::ordered_json::array();
    for (const Config::Entry& entry : loaded.config.entries()) {
        settings.push_back({{"setting", entry.setting->name},
                            {"type", type_name(*entry.setting)},
                            {"value", to_text(entry.value)},
                            {"origin", to_text(entry.origin)},
                            {"default", to_text(default_value(*entry.setting))},
                            {"allowed", allowed(*entry.setting)},
                            {"scope", name(entry.setting->scope)},
                            {"help", entry.setting->help}});
    }
    auto files = nlohmann::ordered_json::array();
    for (const SeenConfigFile& file : loaded.files) {
        files.push_back({{"path", file.path}, {"found", file.found}});
    }
    const nlohmann::ordered_json all = {{"settings", std::move(settings)},
                                        {"files", std::move(files)}};
    // Paths may contain bytes that are not UTF-8.
    return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

/// The table of docs/tuning.md. It does not depend on the configuration of this machine.
std::string as_markdown() {
    std::string text =
        "| setting | type | default | allowed | scope | meaning |\n"
        "|---|---|---|---|---|---|\n";
    for (const Setting& setting : kSettings) {
        text += fmt::format("| `{}` | {} | `{}` | {} | {} | {} |\n", setting.name,
                            type_name(setting), to_text(default_value(setting)), allowed(setting),
                            name(setting.scope), setting.help);
    }
    return text;
}

int show_config(const std::vector<ConfigFlag>& flags, bool json) {
    const auto loaded = load_config({}, flags);
    if (!loaded) {
        fmt::print(stderr, "nexar: {}\n", loaded.error().what());
        return kExitFailure;
    }
    fmt::print("{}", json ? as_json(*loaded) : as_table(*loaded));
    return kExitOk;
}

}  // namespace

void add_config_command(CLI::App& app, Invocation& invocation) {
    struct Options {
        bool json = false;
        bool markdown = false;
    };
    const auto options = std::make_shared<Options>();
    CLI::App* const command = app.add_subcommand(
        "config", "Shows every setting, its value here, and where that value comes from");
    set_help(
        *command, "[OPTIONS]",
        "A setting takes its value from the first of these that contains it: code, command line\n"
        "(--nexar-log-level=debug), environment (NEXAR_LOG_LEVEL=debug), the file named by\n"
        "NEXAR_CONFIG, ~/.config/nexar.toml, /etc/nexar.toml. An invalid value is an error that\n"
        "names the place of the value.\n"
        "\n"
        "Examples:\n"
        "  nexar config\n"
        "  NEXAR_LOG_LEVEL=debug nexar config --json\n"
        "\n"
        "Next steps:\n"
        "docs/tuning.md explains when to change which setting.");
    CLI::Option* const json = command->add_flag("--json", options->json, "Prints JSON");
    command
        ->add_flag("--markdown", options->markdown, "Prints the table of settings for the manual")
        ->excludes(json);
    command->callback([options, &invocation] {
        if (options->markdown) {
            fmt::print("{}", as_markdown());
            return;
        }
        invocation.exit_code = show_config(invocation.flags, options->json);
    });
}

}  // namespace nexar

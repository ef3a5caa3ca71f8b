#include "tables.hpp"

#include "help.hpp"

namespace nexar {

namespace {

OptionRow row_of(const CLI::Option& option) {
    OptionRow row{.names = {}, .value = value_name(option), .meaning = meaning(option)};
    for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
    // A positional argument has only the name used in the usage line.
    if (row.names.empty()) row.names.push_back(option.get_name(true));
    return row;
}

/// The help text without the empty line that separates it from the options.
std::string text_of(const CLI::App& app) {
    std::string text = app.get_footer();
    const std::size_t begin = text.find_first_not_of('\n');
    return begin == std::string::npos ? std::string() : text.substr(begin);
}

}  // namespace

CommandRow command_table(const CLI::App& app, const std::string& parent) {
    CommandRow row{.path = parent.empty() ? app.get_name() : parent + " " + app.get_name(),
                   .name = app.get_name(),
                   .summary = app.get_description(),
                   .arguments = usage_arguments(app),
                   .text = text_of(app),
                   .options = {},
                   .commands = {}};
    for (const CLI::Option* option : app.get_options()) {
        if (!option->get_group().empty()) row.options.push_back(row_of(*option));
    }
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (!command->get_group().empty())
            row.commands.push_back(command_table(*command, row.path));
    }
    return row;
}

}  // namespace nexar

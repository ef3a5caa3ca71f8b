#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace nexar {

/// "RANKS"; empty for a flag. Without what CLI11 adds about types and checks.
inline std::string value_name(const CLI::Option& option) {
    if (option.get_items_expected_max() <= 0) return "";
    const std::string name = option.get_type_name();
    if (name == "TEXT" && option.get_positional()) return "";  // its own name says enough
    return name.substr(0, name.find(':'));
}

/// What an option is for, and in words what else is to be known: its default value, whether it must
/// be given, and what it cannot be combined with.
inline std::string meaning(const CLI::Option& option) {
    std::string text = option.get_description();
    if (!option.get_default_str().empty()) text += "; default: " + option.get_default_str();
    if (option.get_required() && !option.get_positional()) text += "; must be given";
    std::string others;
    for (const CLI::Option* other : option.get_excludes()) {
        others += (others.empty() ? "" : " or ") + other->get_name();
    }
    if (!others.empty()) text += "; cannot be combined with " + others;
    return text;
}

/// Checks that a value is a whole number of this range; says nothing in the help, whose words do.
inline CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
    const auto check = [least, most](std::string& text) -> std::string {
        std::uint64_t value = 0;
        const char* const end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && stop == end && value >= least && value <= most) return "";
        return "\"" + text + "\" is not a whole number from " + std::to_string(least) + " to " +
               std::to_string(most);
    };
    return CLI::Validator(check, "");
}

/// Help as CLI11 writes it, with the arguments of the usage line in our words.
class HelpFormatter : public CLI::Formatter {
public:
    explicit HelpFormatter(std::string arguments) : arguments_(std::move(arguments)) {}

    const std::string& arguments() const noexcept { return arguments_; }

    std::string make_usage(const CLI::App* app, std::string name) const override {
        (void)app;
        return "Usage: " + name + " " + arguments_ + "\n";
    }

    std::string make_option_opts(const CLI::Option* option) const override {
        return value_name(*option).empty() ? "" : " " + value_name(*option);
    }

    std::string make_option_desc(const CLI::Option* option) const override {
        return meaning(*option);
    }

private:
    std::string arguments_;
};

/// `text` stands below the options: paragraphs, lines that end in a colon as headings, and lines
/// that begin with two blanks as they are, such as examples. The man page says the same.
inline void set_help(CLI::App& command, std::string arguments, std::string text) {
    command.formatter(std::make_shared<HelpFormatter>(std::move(arguments)));
    command.footer("\n" + std::move(text));
}

/// What set_help() was given as arguments.
inline std::string usage_arguments(const CLI::App& command) {
    const auto* const formatter = dynamic_cast<const HelpFormatter*>(command.get_formatter().get());
    return formatter == nullptr ? std::string("[OPTIONS]") : formatter->arguments();
}

}  // namespace nexar

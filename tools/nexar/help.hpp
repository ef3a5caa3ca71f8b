#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace nexar {

/// "RANKS"; empty for a flag. Leaves out what CLI11 adds about types and checks.
inline std::string value_name(const CLI::Option& option) {
    if (option.get_items_expected_max() <= 0) return "";
    const std::string name = option.get_type_name();
    if (name == "TEXT" && option.get_positional()) return "";  // its own name says enough
    return name.substr(0, name.find(':'));
}

/// The description of an option, followed by its default value, whether it is required, and the
/// options that it excludes.
inline std::string meaning(const CLI::Option& option) {
    std::string text = option.get_description();
    if (!option.get_default_str().empty()) text += "; default: " + option.get_default_str();
    if (option.get_required() && !option.get_positional()) text += "; required";
    std::string others;
    for (const CLI::Option* other : option.get_excludes()) {
        others += (others.empty() ? "" : " or ") + other->get_name();
    }
    if (!others.empty()) text += "; cannot be combined with " + others;
    return text;
}

/// Checks that a value is a whole number in this range. Adds nothing to the help: the option's
/// description names the range.
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

/// CLI11's help with our own usage line and option descriptions.
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

/// `text` appears below the options. A line that ends in a colon is a heading, a line that begins
/// with two spaces is verbatim (an example), and the rest are paragraphs. The man page uses the
/// same text.
inline void set_help(CLI::App& command, std::string arguments, std::string text) {
    command.formatter(std::make_shared<HelpFormatter>(std::move(arguments)));
    command.footer("\n" + std::move(text));
}

/// The `arguments` passed to set_help().
inline std::string usage_arguments(const CLI::App& command) {
    const auto* const formatter = dynamic_cast<const HelpFormatter*>(command.get_formatter().get());
    return formatter == nullptr ? std::string("[OPTIONS]") : formatter->arguments();
}

}  // namespace nexar

#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

namespace nexar {

/// Help as CLI11 writes it, with the arguments of the usage line in our words.
class HelpFormatter : public CLI::Formatter {
public:
    explicit HelpFormatter(std::string arguments) : arguments_(std::move(arguments)) {}

    const std::string& arguments() const noexcept { return arguments_; }

    std::string make_usage(const CLI::App* app, std::string name) const override {
        (void)app;
        return "Usage: " + name + " " + arguments_ + "\n";
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

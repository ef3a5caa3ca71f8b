// nexar man DIRECTORY: writes the man pages from the same tables as --help. The build runs it.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nexar/version.hpp>
#include <string>
#include <string_view>

#include "command.hpp"
#include "tables.hpp"

namespace nexar {

namespace {

/// Escapes text for roff: hyphens stay hyphens when copied from the page, and no line is taken for
/// a request.
std::string roff(std::string_view text) {
    std::string out;
    bool at_line_begin = true;
    for (const char c : text) {
        if (at_line_begin && (c == '.' || c == '\'')) out += "\\&";
        at_line_begin = c == '\n';
        if (c == '\\') {
            out += "\\e";
        } else if (c == '-') {
            out += "\\-";
        } else {
            out += c;
        }
    }
    return out;
}

std::string upper(std::string_view text) {
    std::string out(text);
    std::ranges::transform(out, out.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return out;
}

/// "nexar-token" for "nexar token".
std::string page_name(std::string_view path) {
    std::string name(path);
    std::ranges::replace(name, ' ', '-');
    return name;
}

std::string options_in_roff(const std::vector<OptionRow>& options) {
    std::string out;
    for (const OptionRow& option : options) {
        std::string names;
        for (const std::string& name : option.names) {
            names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
        }
        out += fmt::format(".TP\n{}", names);
        if (!option.value.empty()) out += fmt::format(" \\fI{}\\fR", roff(option.value));
        out += fmt::format("\n{}.\n", roff(option.meaning));
    }
    return out;
}

/// Converts the text below the options; set_help() describes its format.
std::string text_in_roff(std::string_view text, std::string_view heading) {
    std::string out;
    bool verbatim = false;
    const auto set_verbatim = [&](bool wanted) {
        if (wanted != verbatim) out += wanted ? ".PP\n.nf\n" : ".fi\n";
        verbatim = wanted;
    };
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (line.empty()) {
            set_verbatim(false);
            if (!text.starts_with("  ") && !text.empty()) out += ".PP\n";
        } else if (line.starts_with("  ")) {
            set_verbatim(true);
            out += roff(line) + "\n";
        } else if (line.ends_with(':') && line.find(": ") == std::string_view::npos) {
            set_verbatim(false);
            if (out.ends_with(".PP\n")) out.erase(out.size() - 4);
            out +=
                fmt::format("{} \"{}\"\n", heading,
                            roff(heading == ".SH" ? upper(line.substr(0, line.size() - 1))
                                                  : std::string(line.substr(0, line.size() - 1))));
        } else {
            set_verbatim(false);
            out += roff(line) + "\n";
        }
    }
    set_verbatim(false);
    return out;
}

std::string synopsis(const CommandRow& command) {
    return fmt::format("\\fB{}\\fR {}\n", roff(command.path), roff(command.arguments));
}

/// The subcommands of a command, such as `nexar token create`, each with its options and its text.
std::string nested_in_roff(const CommandRow& command) {
    std::string out;
    for (const CommandRow& nested : command.commands) {
        out += fmt::format(".SH \"{}\"\n{}.PP\n{}.\n", roff(upper(nested.path)), synopsis(nested),
                           roff(nested.summary));
        out += options_in_roff(nested.options);
        if (!nested.text.empty()) out += ".PP\n" + text_in_roff(nested.text, ".SS");
    }
    return out;
}

std::string page(const CommandRow& command, const CommandRow& root) {
    const bool is_root = command.path == root.path;
    const std::string name = page_name(command.path);
    std::string out =
        fmt::format(".TH \"{}\" 1 \"\" \"nexar {}\" \"nexar\"\n", roff(upper(name)), version());
    out += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(command.summary));
    out += ".SH SYNOPSIS\n" + synopsis(command);
    if (!command.commands.empty()) {
        out += ".SH COMMANDS\n";
        for (const CommandRow& nested : command.commands) {
            out += fmt::format(".TP\n\\fB{}\\fR\n{}.\n", roff(nested.path), roff(nested.summary));
        }
    }
    out += ".SH OPTIONS\n" + options_in_roff(command.options);
    if (!is_root) out += nested_in_roff(command);
    if (!command.text.empty()) out += ".SH DESCRIPTION\n" + text_in_roff(command.text, ".SH");
    out += ".SH \"SEE ALSO\"\n";
    std::string others;
    const auto refer = [&](const CommandRow& other) {
        if (other.path == command.path) return;
        others +=
            fmt::format("{}\\fB{}\\fR(1)", others.empty() ? "" : ", ", roff(page_name(other.path)));
    };
    refer(root);
    for (const CommandRow& other : root.commands) refer(other);
    return out + others + "\n";
}

bool write_page(const std::string& directory, const CommandRow& command, const CommandRow& root) {
    const std::string path = fmt::format("{}/{}.1", directory, page_name(command.path));
    std::ofstream file(path);
    file << page(command, root);
    file.flush();
    if (!file) fmt::print(stderr, "nexar: cannot write {}\n", path);
    return file.good();
}

}  // namespace

void add_man_command(CLI::App& app, Invocation& invocation) {
    const auto directory = std::make_shared<std::string>();
    CLI::App* const command = app.add_subcommand("man", "Writes the man pages into a directory");
    command->group(kHidden);
    command->add_option("directory", *directory)->required();
    command->callback([directory, &app, &invocation] {
        const CommandRow root = command_table(app);
        bool written = write_page(*directory, root, root);
        for (const CommandRow& row : root.commands) {
            written = write_page(*directory, row, root) && written;
        }
        invocation.exit_code = written ? kExitOk : kExitFailure;
    });
}

}  // namespace nexar

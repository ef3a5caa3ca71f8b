// nexar completion SHELL: prints the completion script of a shell, from the same tables as --help.
// The build runs it.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/setting.hpp"
#include "base/settings.hpp"
#include "command.hpp"
#include "tables.hpp"

namespace nexar {

namespace {

/// Appends the command and, depth first, all of its subcommands.
void flatten(const CommandRow& command, std::vector<const CommandRow*>& out) {
    out.push_back(&command);
    for (const CommandRow& nested : command.commands) flatten(nested, out);
}

/// The words that may follow a command: subcommands, options, and settings as flags.
std::vector<std::string> words_after(const CommandRow& command) {
    std::vector<std::string> words;
    words.reserve(command.commands.size() + command.options.size() + std::size(kSettings));
    for (const CommandRow& nested : command.commands) words.push_back(nested.name);
    for (const OptionRow& option : command.options) {
        for (const std::string& name : option.names) {
            if (name.starts_with("--")) words.push_back(name);
        }
    }
    for (const Setting& setting : kSettings) words.push_back(flag_name(setting.name) + "=");
    return words;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

/// Puts text into single quotes for a shell.
std::string in_shell_quotes(std::string_view text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

/// A shell function, shared by bash and zsh, that prints the words that may come next.
std::string words_function(const CommandRow& root) {
    std::vector<const CommandRow*> commands;
    flatten(root, commands);
    std::string out =
        "# Prints the candidates; the arguments are the words before the one to complete.\n"
        "_nexar_words() {\n"
        "  local path=nexar word\n"
        "  for word in \"$@\"; do\n"
        "    case \"$path $word\" in\n";
    for (const CommandRow* command : commands) {
        if (command != commands.front()) {
            out += fmt::format("      {}) path={} ;;\n", in_shell_quotes(command->path),
                               in_shell_quotes(command->path));
        }
    }
    out += "    esac\n  done\n  case \"$path\" in\n";
    for (const CommandRow* command : commands) {
        out += fmt::format("    {}) printf '%s\\n' {} ;;\n", in_shell_quotes(command->path),
                           joined(words_after(*command)));
    }
    return out + "  esac\n}\n";
}

std::string for_bash(const CommandRow& root) {
    return "# bash completion for nexar, written by `nexar completion bash`\n" +
           words_function(root) +
           "_nexar() {\n"
           "  local current=${COMP_WORDS[COMP_CWORD]} i\n"
           "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "    if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
           "      # The program of `nexar run` and its arguments.\n"
           "      if ((i == COMP_CWORD - 1)); then\n"
           "        mapfile -t COMPREPLY < <(compgen -c -f -- \"$current\")\n"
           "      else\n"
           "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
           "      fi\n"
           "      return\n"
           "    fi\n"
           "  done\n"
           "  if [[ ${COMP_WORDS[COMP_CWORD - 1]} == --state ]]; then\n"
           "    mapfile -t COMPREPLY < <(compgen -d -- \"$current\")\n"
           "    return\n"
           "  fi\n"
           "  mapfile -t COMPREPLY < <(compgen -W \"$(_nexar_words "
           "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\")\" -- \"$current\")\n"
           "  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then\n"
           "    compopt -o nospace 2>/dev/null\n"
           "  fi\n"
           "}\n"
           "complete -F _nexar nexar\n";
}

std::string for_zsh(const CommandRow& root) {
    return "#compdef nexar\n# zsh completion for nexar, written by `nexar completion zsh`\n" +
           words_function(root) +
           "_nexar() {\n"
           "  if (( ${words[(Ie)--]} && ${words[(Ie)--]} < CURRENT )); then\n"
           "    _command_names -e || _files\n"
           "    _files\n"
           "    return\n"
           "  fi\n"
           "  compadd -- ${(f)\"$(_nexar_words ${words[2,CURRENT-1]})\"}\n"
           "}\n"
           "_nexar \"$@\"\n";
}

std::string for_fish(const CommandRow& root) {
    std::vector<const CommandRow*> commands;
    flatten(root, commands);
    std::string out =
        "# fish completion for nexar, written by `nexar completion fish`\n"
        "complete -c nexar -f\n";
    for (const CommandRow* command : commands) {
        const std::string when = command == commands.front()
                                     ? "__fish_use_subcommand"
                                     : fmt::format("__fish_seen_subcommand_from {}", command->name);
        for (const CommandRow& nested : command->commands) {
            out += fmt::format("complete -c nexar -n {} -a {} -d {}\n", in_shell_quotes(when),
                               nested.name, in_shell_quotes(nested.summary));
        }
        for (const OptionRow& option : command->options) {
            std::string names;
            for (const std::string& name : option.names) {
                if (!name.starts_with('-')) continue;
                names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
            }
            if (names.empty()) continue;
            out += fmt::format("complete -c nexar -n {}{}{} -d {}\n", in_shell_quotes(when), names,
                               option.value.empty() ? "" : " -x", in_shell_quotes(option.meaning));
        }
    }
    return out;
}

}  // namespace

void add_completion_command(CLI::App& app, Invocation& invocation) {
    const auto shell = std::make_shared<std::string>();
    CLI::App* const command =
        app.add_subcommand("completion", "Prints the completion script of a shell");
    command->group(kHidden);
    command->add_option("shell", *shell)->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
    command->callback([shell, &app, &invocation] {
        const CommandRow root = command_table(app);
        fmt::print("{}", *shell == "bash"  ? for_bash(root)
                         : *shell == "zsh" ? for_zsh(root)
                                           : for_fish(root));
        invocation.exit_code = kExitOk;
    });
}

}  // namespace nexar

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nexar {

/// One `--nexar-...` flag of a command line; `name` excludes the value, and `value` is nullopt if
/// none followed.
struct ConfigFlag {
    std::string name;
    std::optional<std::string> value;
};

struct SplitArguments {
    std::vector<ConfigFlag> flags;
    std::vector<std::size_t> rest;  // indices of the arguments that belong to the program
};

/// Finds nexar's flags among the arguments of a program, which exclude the program name.
/// `--nexar-x=value` and `--nexar-x value` mean the same; in the second form the next argument is
/// the value unless it starts with `--`. Everything from a lone `--` on belongs to the rest.
SplitArguments split_arguments(std::span<const std::string> arguments);

}  // namespace nexar

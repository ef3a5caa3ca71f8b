#pragma once

#include <string>
#include <vector>

namespace nexar {

/// What a program left behind.
struct Outcome {
    int exit_code = -1;  // -1 when a signal ended it
    std::string output;
    std::string errors;
};

/// A list as exec wants it; lives no longer than `texts`.
std::vector<char*> pointers(std::vector<std::string>& texts);

/// Runs a program to its end with exactly this environment ("NAME=value") and these arguments.
Outcome run_program(const std::string& path, std::vector<std::string> arguments,
                    std::vector<std::string> environment);

}  // namespace nexar

#pragma once

#include <string>
#include <vector>

namespace nexar {

/// The exit code and the output of a program.
struct Outcome {
    int exit_code = -1;  // -1 if a signal ended it
    std::string output;
    std::string errors;
};

/// The null-terminated list that exec takes; valid as long as `texts`.
std::vector<char*> pointers(std::vector<std::string>& texts);

/// Runs a program to its end with exactly this environment ("NAME=value") and these arguments.
Outcome run_program(const std::string& path, std::vector<std::string> arguments,
                    std::vector<std::string> environment);

}  // namespace nexar

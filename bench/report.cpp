#include "report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace nexar::bench {

void Report::row(std::string_view name, double value, std::string_view unit) {
    keep(name, value, unit);
    fmt::print("{:<44} {:>14.4g} {}\n", name, value, unit);
    std::fflush(stdout);
}

void Report::keep(std::string_view name, double value, std::string_view unit) {
    rows_.push_back({std::string(name), value, std::string(unit)});
}

bool Report::finish() const {
    if (json_path_.empty()) return true;
    std::ofstream file(json_path_);
    for (const Row& row : rows_) {
        file << nlohmann::ordered_json{{"name", row.name}, {"value", row.value}, {"unit", row.unit}}
             << '\n';
    }
    file.flush();
    if (!file) {
        fmt::print(stderr, "cannot write the results to {}; check the folder and the disk\n",
                   json_path_);
        return false;
    }
    return true;
}

}  // namespace nexar::bench

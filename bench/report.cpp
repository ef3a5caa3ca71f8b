#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace nexar::bench {

void Report::row(std::string_view name, double value, std::string_view unit) {
    keep(name, value, unit);
    fmt::print("{:<44} {:>14.4g} {}\n", name, value, unit);
    std::fflush(stdout);
}

void Report::row(std::string_view name, double value, std::string_view unit, double bar) {
    keep(name, value, unit);
    rows_.back().bar = bar;
    fmt::print("{:<44} {:>14.4g} {:<4} bar {:g}: {}\n", name, value, unit, bar,
               value <= bar ? "ok" : "EXCEEDED");
    std::fflush(stdout);
}

bool Report::all_ok() const {
    return std::ranges::all_of(
        rows_, [](const Row& row) { return row.value <= row.bar.value_or(row.value); });
}

void Report::keep(std::string_view name, double value, std::string_view unit) {
    rows_.push_back({std::string(name), value, std::string(unit)});
}

bool Report::finish() const {
    if (json_path_.empty()) return true;
    std::ofstream file(json_path_);
    for (const Row& row : rows_) {
        nlohmann::ordered_json one{{"name", row.name}, {"value", row.value}, {"unit", row.unit}};
        if (row.bar) {
            one["bar"] = *row.bar;
            one["ok"] = row.value <= *row.bar;
        }
        file << one << '\n';
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

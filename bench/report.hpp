#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nexar::bench {

/// The results of a benchmark: one row per figure, printed at once and, if the user asked for a
/// file, written as one JSON object per line: {"name":..., "value":..., "unit":...}.
class Report {
public:
    /// With an empty `json_path`, rows are only printed.
    explicit Report(std::string json_path) : json_path_(std::move(json_path)) {}

    void row(std::string_view name, double value, std::string_view unit);
    /// A figure that must not exceed `bar`. The row also has "bar" and "ok".
    void row(std::string_view name, double value, std::string_view unit, double bar);

    /// Adds a row without printing it, for figures that a table has already shown.
    void keep(std::string_view name, double value, std::string_view unit);

    /// True if no figure exceeds its bar.
    bool all_ok() const;

    /// Writes the file. On failure prints an error and returns false.
    bool finish() const;

private:
    struct Row {
        std::string name;
        double value;
        std::string unit;
        std::optional<double> bar{};
    };

    std::string json_path_;
    std::vector<Row> rows_;
};

}  // namespace nexar::bench

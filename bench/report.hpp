#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nexar::bench {

/// What a benchmark found: one row per figure, printed as it comes and written as one JSON object
/// per line, {"name":..., "value":..., "unit":...}, when the user asked for a file.
class Report {
public:
    /// `json_path` may be empty: then rows are only printed.
    explicit Report(std::string json_path) : json_path_(std::move(json_path)) {}

    void row(std::string_view name, double value, std::string_view unit);

    /// The same, not printed: for figures that a table has shown.
    void keep(std::string_view name, double value, std::string_view unit);

    /// Writes the file. False, with a sentence on stderr, when it cannot be written.
    bool finish() const;

private:
    struct Row {
        std::string name;
        double value;
        std::string unit;
    };

    std::string json_path_;
    std::vector<Row> rows_;
};

}  // namespace nexar::bench

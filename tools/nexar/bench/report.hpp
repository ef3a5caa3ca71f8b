#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "bench/measurement.hpp"
#include "bench/plan.hpp"

namespace nexar::bench {

/// What the user sees: rows as they come on standard output, and each as one JSON object on a line
/// of a file, when one was asked for. For one rank only.
class Report {
public:
    /// Throws nexar::Error when the file cannot be opened.
    Report(const Plan& plan, std::uint32_t world, std::string protection);

    void row(const Measured& measured);

    /// The last lines; true when all data was right and the file is written.
    bool finish();

private:
    void print_head() const;
    void print_row(const Measured& measured) const;
    void write_json(const Measured& measured);

    const Plan& plan_;
    std::uint32_t world_;
    std::string protection_;
    std::ofstream json_{};
    std::uint64_t rows_ = 0;
    std::uint64_t wrong_ = 0;
    double bus_bandwidths_ = 0;
};

}  // namespace nexar::bench

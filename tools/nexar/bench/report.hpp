#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "bench/measurement.hpp"
#include "bench/plan.hpp"

namespace nexar::bench {

/// The output of `nexar bench`: prints each row as soon as it is measured and, on request, writes
/// it to a file as a line with one JSON object. Only rank 0 has a report.
class Report {
public:
    /// Throws nexar::Error when the file cannot be opened.
    Report(const Plan& plan, std::uint32_t world, std::string protection, std::string links);

    /// `copy_rate` is that of copy_rates() for this size.
    void row(const Measured& measured, double copy_rate);

    /// Prints the last lines. True if all data was right and the file was written.
    bool finish();

private:
    void print_head() const;
    void print_row(const Measured& measured, double copy_rate) const;
    void write_json(const Measured& measured, double copy_rate);

    const Plan& plan_;
    std::uint32_t world_;
    std::string protection_;
    std::string links_;
    std::ofstream json_{};
    std::uint64_t rows_ = 0;
    std::uint64_t wrong_ = 0;
    double bus_bandwidths_ = 0;
};

}  // namespace nexar::bench

#pragma once

#include <nexar/result.hpp>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "run/keeper.hpp"
#include "run/line_prefixer.hpp"
#include "run/output_stream.hpp"
#include "run/supervisor.hpp"

namespace nexar::run {

/// Lines of a unit on their way: the pipe that the unit writes to, and where the lines go.
class LineSource {
public:
    LineSource(Descriptor pipe, std::string prefix, std::size_t longest = LinePrefixer::kLongest)
        : pipe_(std::move(pipe)), prefixer_(std::move(prefix), longest) {}

    void set_filter(LinePrefixer::Filter filter) { prefixer_.set_filter(std::move(filter)); }

    int descriptor() const noexcept { return pipe_.number(); }
    bool is_open() const noexcept { return pipe_.number() >= 0; }

    /// Reads once what is there; false when there is nothing now. At the end it is closed.
    bool read_some(OutputStream& to);
    /// Reads what is there now; the end of the line may still be missing.
    void drain(OutputStream& to);
    /// Passes on also a line without end.
    void finish(OutputStream& to);

private:
    Descriptor pipe_;
    LinePrefixer prefixer_;
};

/// What is written to a unit: for rank 0 what is typed, for a part of the run what it is told.
class InputSink {
public:
    explicit InputSink(Descriptor pipe) : pipe_(std::move(pipe)) {}

    int descriptor() const noexcept { return pipe_.number(); }
    bool is_open() const noexcept { return pipe_.number() >= 0; }
    bool has_pending() const noexcept { return is_open() && !pending_.empty(); }

    void add(std::string_view bytes) {
        if (is_open()) pending_ += bytes;
    }
    /// Writes what can be written now.
    void write_some() noexcept;
    void close() noexcept { pipe_ = Descriptor(); }

private:
    Descriptor pipe_;
    std::string pending_;
};

/// The launcher's ends of a unit's three standard streams.
struct UnitStreams {
    LineSource output;
    LineSource errors;
    InputSink input;
};

/// The other ends are in the plan.
struct PlannedUnit {
    UnitPlan plan;
    UnitStreams streams;
};

/// `pumps`: who gets input gets it through a pipe and not directly; a terminal stops those who
/// read from it in another process group.
Result<PlannedUnit> plan_unit(const Unit& unit, bool pumps);

/// Opens /dev/null for those of 0, 1 and 2 that are closed, so that no pipe becomes one of them.
void fill_standard_descriptors() noexcept;

}  // namespace nexar::run

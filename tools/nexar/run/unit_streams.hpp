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

/// Reads the pipe that a unit writes to, and splits the output into prefixed lines.
class LineSource {
public:
    LineSource(Descriptor pipe, std::string prefix, std::size_t longest = LinePrefixer::kLongest)
        : pipe_(std::move(pipe)), prefixer_(std::move(prefix), longest) {}

    void set_filter(LinePrefixer::Filter filter) { prefixer_.set_filter(std::move(filter)); }

    int descriptor() const noexcept { return pipe_.number(); }
    bool is_open() const noexcept { return pipe_.number() >= 0; }

    /// Reads available bytes once; false if there are none. Closes the pipe at its end.
    bool read_some(OutputStream& to);
    /// Reads all bytes available now; the last line may be incomplete.
    void drain(OutputStream& to);
    /// Another process writes to the pipe from now on: forwards an incomplete line, and gives the
    /// following ones this prefix.
    void begin_anew(OutputStream& to, std::string prefix);
    /// Forwards an incomplete line and closes the pipe.
    void finish(OutputStream& to);

private:
    Descriptor pipe_;
    LinePrefixer prefixer_;
};

/// Writes to a unit: the user's typing to rank 0, messages to a part of the run.
class InputSink {
public:
    explicit InputSink(Descriptor pipe) : pipe_(std::move(pipe)) {}

    int descriptor() const noexcept { return pipe_.number(); }
    bool is_open() const noexcept { return pipe_.number() >= 0; }
    bool has_pending() const noexcept { return is_open() && !pending_.empty(); }

    void add(std::string_view bytes) {
        if (is_open()) pending_ += bytes;
    }
    /// Writes as much as possible without blocking.
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

/// The launcher's ends of the streams, and the plan, which holds the other ends.
struct PlannedUnit {
    UnitPlan plan;
    UnitStreams streams;
};

/// `pumps`: the launcher copies its input to the unit through a pipe. Needed for a terminal, which
/// stops background process groups that read from it.
Result<PlannedUnit> plan_unit(const Unit& unit, bool pumps);

/// Opens /dev/null for each closed descriptor among 0, 1 and 2, so that no pipe gets such a number.
void fill_standard_descriptors() noexcept;

}  // namespace nexar::run

#include "run/unit_streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/try.hpp"

namespace nexar::run {

namespace {

Error failure(std::string_view what) {
    return {Errc::unsupported,
            fmt::format("{}: {}{}", what, std::generic_category().message(errno),
                        errno == EMFILE ? "; raise the limit with ulimit -n" : "")};
}

constexpr std::size_t kLongestPrefix = 64;

struct Pipe {
    Descriptor read;
    Descriptor write;
};

Result<Pipe> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failure("pipe");
    return Pipe{.read = Descriptor(ends[0]), .write = Descriptor(ends[1])};
}

/// For the launcher's end only: a program's standard output must be an ordinary blocking pipe.
void make_non_blocking(const Descriptor& end) {
    ::fcntl(end.number(), F_SETFL, O_NONBLOCK);
}

/// Passes ownership to the keeper's plan.
int released(Descriptor& descriptor) {
    const int copy = ::fcntl(descriptor.number(), F_DUPFD_CLOEXEC, 3);
    descriptor = Descriptor();
    return copy;
}

}  // namespace

bool LineSource::read_some(OutputStream& to) {
    if (!is_open()) return false;
    std::array<char, 65536> bytes;
    const ssize_t n = ::read(pipe_.number(), bytes.data(), bytes.size());
    if (n > 0) {
        prefixer_.take({bytes.data(), static_cast<std::size_t>(n)}, to.pending());
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    finish(to);
    return false;
}

void LineSource::drain(OutputStream& to) {
    // This many reads exceed the capacity of a pipe.
    for (int i = 0; i < 32 && read_some(to); ++i) {
    }
}

void LineSource::begin_anew(OutputStream& to, std::string prefix) {
    prefixer_.finish(to.pending());
    prefixer_.set_prefix(std::move(prefix));
}

void LineSource::finish(OutputStream& to) {
    prefixer_.finish(to.pending());
    pipe_ = Descriptor();
}

void InputSink::write_some() noexcept {
    if (!has_pending()) return;
    const ssize_t n = ::write(pipe_.number(), pending_.data(), pending_.size());
    if (n > 0) pending_.erase(0, static_cast<std::size_t>(n));
    if (n < 0 && errno != EAGAIN && errno != EINTR) close();
}

Result<PlannedUnit> plan_unit(const Unit& unit, bool pumps) {
    NEXAR_TRY_VALUE(output, make_pipe());
    NEXAR_TRY_VALUE(errors, make_pipe());
    make_non_blocking(output.read);
    make_non_blocking(errors.read);
    UnitPlan plan{.command = unit.command,
                  .environment = unit.environment,
                  .processors = unit.processors,
                  .is_rank = unit.is_rank(),
                  .restarts = unit.restarts && unit.is_rank(),
                  .output = released(output.write),
                  .errors = released(errors.write)};
    Descriptor input_end;
    if (!unit.is_rank() || (unit.gets_input && pumps)) {
        NEXAR_TRY_VALUE(input, make_pipe());
        make_non_blocking(input.write);
        plan.input = released(input.read);
        input_end = std::move(input.write);
    } else if (unit.gets_input) {
        plan.input = STDIN_FILENO;
    } else {
        plan.input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    if (plan.input < 0 || plan.output < 0 || plan.errors < 0)
        return failure("opening the standard streams of a rank");
    // Do not split a line again that a part has already split: the rest would lack the prefix of
    // its rank.
    const std::size_t longest = LinePrefixer::kLongest + (unit.is_rank() ? 0 : kLongestPrefix);
    return PlannedUnit{
        .plan = std::move(plan),
        .streams = {.output = LineSource(std::move(output.read), unit.output_prefix, longest),
                    .errors = LineSource(std::move(errors.read), unit.errors_prefix),
                    .input = InputSink(std::move(input_end))}};
}

void fill_standard_descriptors() noexcept {
    int descriptor = 0;
    do {
        descriptor = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor > STDERR_FILENO) ::close(descriptor);
}

}  // namespace nexar::run

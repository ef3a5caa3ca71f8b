#include "wire/messages.hpp"

#include "base/printable.hpp"
#include "wire/limits.hpp"

namespace nexar::wire {

ErrorReport report_of(const Error& error, Epoch epoch) {
    return {.code = error.code(),
            .epoch = epoch,
            .text = printable(error.cause(), kMaxReportTextBytes),
            .rank = error.rank(),
            .sequence = error.sequence()};
}

}  // namespace nexar::wire

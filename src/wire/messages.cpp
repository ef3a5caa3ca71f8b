#include "wire/messages.hpp"

#include <fmt/format.h>

#include "base/printable.hpp"
#include "wire/limits.hpp"

namespace nexar::wire {

ErrorReport report_of(const Error& error, Epoch epoch) {
    return {.code = error.code(),
            .epoch = epoch,
            .text = printable(error.cause(), kMaxReportTextBytes),
            .rank = internal_rank(error.rank()),
            .sequence = error.sequence()};
}

Result<void> check_version(const Hello& hello, std::string_view us) {
    if (hello.min_version <= kProtocolVersion && kProtocolVersion <= hello.max_version) return {};
    return Error(Errc::version_mismatch,
                 fmt::format("it speaks protocol versions {} to {}, but {} speaks {}",
                             hello.min_version, hello.max_version, us, kProtocolVersion));
}

}  // namespace nexar::wire

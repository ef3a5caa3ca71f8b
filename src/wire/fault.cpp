#include "wire/fault.hpp"

#include <fmt/format.h>

#include <string>

#include "base/assert.hpp"

namespace nexar::wire {

namespace {

Errc code_of(FaultKind kind) {
    switch (kind) {
        case FaultKind::above:
        case FaultKind::too_long:
        case FaultKind::too_many:
            return Errc::limit_exceeded;
        case FaultKind::not_supported:
        case FaultKind::unknown_critical:
            return Errc::unsupported;
        case FaultKind::wrong_version:
            return Errc::version_mismatch;
        default:
            return Errc::malformed;
    }
}

std::string words(const Fault& f) {
    switch (f.kind) {
        case FaultKind::none:
            break;
        case FaultKind::truncated:
            return fmt::format("the bytes end inside {}: {} left, {} needed", f.field, f.found,
                               f.allowed);
        case FaultKind::trailing:
            return fmt::format("{} bytes follow the last field, allowed are none", f.found);
        case FaultKind::below:
            return fmt::format("{} is {}, allowed is at least {}", f.field, f.found, f.allowed);
        case FaultKind::above:
            return fmt::format("{} is {}, allowed is at most {}", f.field, f.found, f.allowed);
        case FaultKind::too_long:
            return fmt::format("{} has {} bytes, allowed are at most {}", f.field, f.found,
                               f.allowed);
        case FaultKind::too_many:
            return fmt::format("{} has {} entries, allowed are at most {}", f.field, f.found,
                               f.allowed);
        case FaultKind::unknown_bits:
            return fmt::format("{} is {:#x}, allowed are the bits of {:#x}", f.field, f.found,
                               f.allowed);
        case FaultKind::unknown_value:
        case FaultKind::not_supported:
            return fmt::format("{} is {}, which this build does not know; the last it knows is {}",
                               f.field, f.found, f.allowed);
        case FaultKind::wrong_constant:
            return fmt::format("{} is {:#x}, allowed is only {:#x}", f.field, f.found, f.allowed);
        case FaultKind::wrong_version:
            return fmt::format("the protocol version is {}, this build speaks {}", f.found,
                               f.allowed);
        case FaultKind::bad_text:
            return fmt::format(
                "{} is wrong at byte {}, allowed is UTF-8 without control characters", f.field,
                f.found);
        case FaultKind::field_length:
            return fmt::format("optional field {} has {} bytes, allowed are {}", f.field, f.found,
                               f.allowed);
        case FaultKind::field_order:
            return fmt::format("optional field {} follows field {}, ids must ascend from 1",
                               f.found, f.allowed);
        case FaultKind::unknown_critical:
            return fmt::format(
                "optional field {:#x} must be understood (its top bit is set) and "
                "this build does not know it",
                f.found);
        case FaultKind::default_written:
            return fmt::format("optional field {} holds its default, which is left out", f.field);
        case FaultKind::rule:
            return fmt::format("{} is {}, {}", f.field, f.found, f.text);
    }
    NEXAR_ASSERT(false, "only a fault has words");
    return {};
}

}  // namespace

void FirstFault::keep(const Fault& fault) noexcept {
    if (!any()) fault_ = fault;
}

Error decode_error(std::string_view message, const Fault& fault) {
    return {code_of(fault.kind), fmt::format("{}: {}", message, words(fault))};
}

Error encode_error(std::string_view message, const Fault& fault) {
    return {Errc::invalid_argument, fmt::format("cannot encode {}: {}", message, words(fault))};
}

}  // namespace nexar::wire

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
            return fmt::format("the input ends inside {}: {} left, {} needed", f.field, f.found,
                               f.allowed);
        case FaultKind::trailing:
            return fmt::format("{} bytes follow the last field; the data must end there", f.found);
        case FaultKind::below:
            return fmt::format("{} is {}; it must be at least {}", f.field, f.found, f.allowed);
        case FaultKind::above:
            return fmt::format("{} is {}; it must be at most {}", f.field, f.found, f.allowed);
        case FaultKind::too_long:
            return fmt::format("{} has {} bytes; the limit is {}", f.field, f.found, f.allowed);
        case FaultKind::too_many:
            return fmt::format("{} has {} entries; the limit is {}", f.field, f.found, f.allowed);
        case FaultKind::unknown_bits:
            return fmt::format("{} is {:#x}; the known bits are {:#x}", f.field, f.found,
                               f.allowed);
        case FaultKind::unknown_value:
        case FaultKind::not_supported:
            return fmt::format(
                "{} is {}, which this build does not know; the highest known value is {}", f.field,
                f.found, f.allowed);
        case FaultKind::wrong_constant:
            return fmt::format("{} is {:#x}; it must be {:#x}", f.field, f.found, f.allowed);
        case FaultKind::wrong_version:
            return fmt::format("the protocol version is {}, but this build speaks {}", f.found,
                               f.allowed);
        case FaultKind::bad_text:
            return fmt::format(
                "{} is invalid at byte {}; it must be UTF-8 without control characters", f.field,
                f.found);
        case FaultKind::field_length:
            return fmt::format("optional field {} has {} bytes; it must have {}", f.field, f.found,
                               f.allowed);
        case FaultKind::field_order:
            return fmt::format("optional field {} follows field {}; ids must ascend from 1",
                               f.found, f.allowed);
        case FaultKind::unknown_critical:
            return fmt::format(
                "optional field {:#x} is mandatory (its top bit is set), but "
                "this build does not know it",
                f.found);
        case FaultKind::default_written:
            return fmt::format("optional field {} holds its default and must be omitted", f.field);
        case FaultKind::rule:
            return fmt::format("{} is {}; {}", f.field, f.found, f.text);
    }
    NEXAR_ASSERT(false, "there is no fault to describe");
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

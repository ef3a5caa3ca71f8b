#include "wire/preamble.hpp"

#include <fmt/format.h>

#include "base/assert.hpp"
#include "wire/describe.hpp"
#include "wire/measurer.hpp"
#include "wire/reader.hpp"
#include "wire/writer.hpp"

namespace nexar::wire {

std::string_view name(Lane lane) noexcept {
    switch (lane) {
        case Lane::control:
            return "control";
        case Lane::rpc:
            return "rpc";
        case Lane::eager:
            return "eager";
        case Lane::bulk:
            return "bulk";
        case Lane::call:
            return "call";
        case Lane::seed:
            return "seed";
        case Lane::file:
            return "file";
        case Lane::collective:
            return "collective";
        case Lane::continued:
            return "continued";
    }
    return "unknown";
}

Result<std::size_t> encode(const Preamble& preamble, std::span<std::byte> out) {
    Measurer measured;
    describe(measured, preamble);
    if (measured.fault().any()) return encode_error("preamble", *measured.fault());
    const std::size_t size = measured.fixed_bytes();
    if (out.size() < size) {
        return Error(Errc::invalid_argument,
                     fmt::format("cannot encode preamble: it takes {} bytes, but the buffer has {}",
                                 size, out.size()));
    }
    Writer writer(out.first(size));
    describe(writer, preamble);
    NEXAR_ASSERT(writer.room() == 0, "Writer and Measurer follow the same description");
    return size;
}

Result<std::size_t> preamble_size(std::span<const std::byte> bytes) {
    if (bytes.size() < kPreambleBytes) return kPreambleBytes;
    Preamble preamble;
    FirstFault fault;
    OptionalFields none({}, fault);
    Reader reader(bytes.first(kPreambleBytes), none, fault);
    describe_common(reader, preamble);
    if (fault.any()) return decode_error("preamble", *fault);
    return encoded_size(preamble);
}

Result<Preamble> decode_preamble(std::span<const std::byte> bytes) {
    Preamble preamble;
    FirstFault fault;
    OptionalFields none({}, fault);
    Reader reader(bytes, none, fault);
    describe(reader, preamble);
    reader.finish();
    if (fault.any()) return decode_error("preamble", *fault);
    return preamble;
}

}  // namespace nexar::wire

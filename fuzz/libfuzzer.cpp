#include <cstddef>
#include <cstdint>
#include <span>

#include "harness.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    nexar::fuzz::accepts(std::as_bytes(std::span(data, size)));
    return 0;
}

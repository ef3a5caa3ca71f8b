#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "harness.hpp"

namespace {

const nexar::fuzz::Harness* chosen = nullptr;

}  // namespace

// One program contains every harness; the variable NEXAR_FUZZ_HARNESS selects the one to run.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
    const char* const name = std::getenv("NEXAR_FUZZ_HARNESS");
    if (name != nullptr) chosen = nexar::fuzz::find_harness(name);
    if (chosen != nullptr) return 0;
    std::fprintf(stderr, "set NEXAR_FUZZ_HARNESS to one of:");
    for (const auto& harness : nexar::fuzz::harnesses()) {
        std::fprintf(stderr, " %.*s", static_cast<int>(harness.name.size()), harness.name.data());
    }
    std::fprintf(stderr, "\n");
    std::exit(2);
}

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    chosen->accepts(std::as_bytes(std::span(data, size)));
    return 0;
}

#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace nexar {

void assertion_failed(const char* condition, const char* file, int line,
                      const char* message) noexcept {
    std::fprintf(stderr, "nexar: assertion failed at %s:%d: %s%s%s\n", file, line, condition,
                 *message != '\0' ? ": " : "", message);
    std::fflush(stderr);
    std::abort();
}

}  // namespace nexar
